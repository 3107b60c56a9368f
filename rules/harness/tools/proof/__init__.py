"""Whether an imported task means what it meant: its original's own inputs, results and check."""
