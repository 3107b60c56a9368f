"""The admission gate: whether a task is fit for a benchmark."""
