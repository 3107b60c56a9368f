"""Triton's interpreter made a correct, checked target: the cpu platform of Triton tasks."""
