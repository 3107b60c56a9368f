"""Fetches pinned files from the sources that this machine is configured for."""
