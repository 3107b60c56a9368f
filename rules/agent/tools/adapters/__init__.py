"""Adapters by name; see ``adapter.py``."""
