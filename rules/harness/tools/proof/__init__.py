"""Compares an imported task with its original: inputs, results and check."""
