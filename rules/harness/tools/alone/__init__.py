"""Candidates that are called once, by themselves, so that a tool can watch them."""
