"""Runs a Triton program on the CPU in two processes: one for its module, one for its kernels."""
