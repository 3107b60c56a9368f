"""The analyze gate: what a counted kernel asks memory for, by line of source."""
