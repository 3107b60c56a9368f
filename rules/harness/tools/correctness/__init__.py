"""The correctness gate and its stages."""
