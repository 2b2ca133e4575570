"""Rules: how they are read (load), what they hold (schema), when they fire (judge)."""
