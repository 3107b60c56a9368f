"""Requests: programs, specs, shapes, seeds, drawn configs."""
