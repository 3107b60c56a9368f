"""Where tests of imports find the library that reads benchmarks."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[3] / "rules/imports/tools")]
