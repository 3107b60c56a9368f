"""Judges outputs: oracle, tolerance, comparison, and runs of both sides."""
