"""Flight-recorder dumps of torch: which files are some, reading them safely, and what of them is needed."""
