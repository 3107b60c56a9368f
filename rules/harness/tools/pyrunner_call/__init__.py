"""What a runner needs for programs of which a call says how they are called."""
