"""The parts of the Python runner that only devices need."""
