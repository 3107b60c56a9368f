"""The truth about outputs: oracle, tolerance, comparison, and both sides' answers to it."""
