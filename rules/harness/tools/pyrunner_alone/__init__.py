"""The process in which a Triton candidate is called once, by itself, under a profiler."""
