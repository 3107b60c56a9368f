"""Beside a kernel whose file has its tests, too: they are declared, and none runs.

Tests ask what the GPU can do where they are declared, hence the stand-in for one.
"""

import stand_in  # type: ignore[import-not-found]  # noqa: F401
from marks import *  # type: ignore[import-not-found]  # noqa: F403
