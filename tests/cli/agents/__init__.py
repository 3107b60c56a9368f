"""Agents for tests: files that run inside a session's sandbox."""
