"""What the rules know, brought together by cause and by rule, for people to read: behind `explain`, `rules show` and the guide."""
