"""Layer 1: the nouns of the design as frozen values. No I/O."""
