"""How a hostile program is run: launcher, sandbox, shared memory, and the conversation."""
