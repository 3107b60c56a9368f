"""kabuild: hermetic build and evaluation of GPU kernels written by agents."""

__version__ = "0.1.0"
