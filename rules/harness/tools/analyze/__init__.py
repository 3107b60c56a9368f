"""The analyze gate: counts a kernel's memory accesses by line of source."""
