"""A GPU as the judge and the runners use it: driver, memory that is shared, state."""
