"""The retention gate: how much of a speedup remains on drawn configs."""
