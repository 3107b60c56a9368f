"""Layer 6c: importing tasks of other benchmarks: adapters, captures in sandboxes, and locks."""
