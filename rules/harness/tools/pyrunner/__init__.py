"""The runner of Triton and PyTorch candidates: a Python process that never judges."""
