"""The sanitize gate: what an instrumented kernel does to memory and at barriers."""
