"""What a model and a layout cost in memory and time: pure functions, no log and no GPU needed."""
