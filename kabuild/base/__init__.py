"""Layer 0: errors, canonical bytes, time and files. Imports nothing of kabuild."""
