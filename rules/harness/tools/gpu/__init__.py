"""Access to the device for judge and runners: driver, shared memory, state."""
