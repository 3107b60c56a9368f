"""The admission gate: whether a task deserves to be in a benchmark."""
