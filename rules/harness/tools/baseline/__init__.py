"""Chooses the form in which a PyTorch baseline is timed, without a candidate."""
