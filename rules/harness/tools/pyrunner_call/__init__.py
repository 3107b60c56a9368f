"""The parts of a runner that only programs with a declared call need."""
