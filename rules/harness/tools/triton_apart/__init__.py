"""A Triton program for the processor, in two processes: its module, and its kernels."""
