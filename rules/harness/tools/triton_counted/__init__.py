"""Counts the memory accesses of Triton kernels that the interpreter runs."""
