"""Published evaluations: writing one, checking it, and running it again."""
