"""What is asked: programs, specs, shapes, seeds, drawn configs."""
