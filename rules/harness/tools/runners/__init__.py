"""Runs a hostile program: launcher, sandbox, shared memory, and control messages."""
