"""What the machine and the training environment tell: each probe is one file, and each may fail without touching the others."""
