"""Layer 4: folds over events and results. What people and programs get to see of a build."""
