"""The sanitize gate: a watched kernel's mistakes in memory and at barriers."""
