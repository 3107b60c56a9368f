"""Counts what Triton kernels ask memory for, as the interpreter runs them."""
