"""The choice of what a PyTorch baseline is timed as, which no candidate has a part in."""
