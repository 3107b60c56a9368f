"""What importers of benchmarks share. It runs where a task is captured, and where it is judged."""
