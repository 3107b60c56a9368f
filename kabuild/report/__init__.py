"""Layer 4: reports for people and programs, as folds over events and results."""
