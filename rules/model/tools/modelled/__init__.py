"""A user's model in a sandbox: exported, divided into parts, timed, and written as tasks."""
