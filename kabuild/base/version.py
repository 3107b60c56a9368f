"""Which kabuild this is."""

__version__ = "0.1.0"

UPDATE = "update the checkout that kabuild is installed from, and install it again"
"""What to do where a later kabuild is needed."""
