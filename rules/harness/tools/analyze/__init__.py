"""The analyze gate: the memory accesses of a counted kernel, by line of source."""
