"""A user's neural network: its profile, its parts as tasks, and the whole with faster parts."""
