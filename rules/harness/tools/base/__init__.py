"""What is asked and answered: specs, shapes, dtypes, seeds, verdicts, policies."""
