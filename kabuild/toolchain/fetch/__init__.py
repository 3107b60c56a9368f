"""Getting pinned files from where this machine is configured to get such files."""
