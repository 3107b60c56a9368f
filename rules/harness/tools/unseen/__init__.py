"""The unseen gate, and the sampler of its configs."""
