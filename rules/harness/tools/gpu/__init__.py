"""The device as judge and runners use it: driver, shared memory, state."""
