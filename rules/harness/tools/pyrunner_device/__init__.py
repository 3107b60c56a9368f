"""What of the Python runner is for devices alone."""
