"""Doubles for the seams of kabuild, and short ways to build values in tests."""
