"""The counters gate: what a device counts of a candidate, by the profiler of its vendor."""
