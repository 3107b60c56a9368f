"""Beside a kernel whose file has its tests, too, which are dropped: it may import pytest.

Such files ask what the GPU can do where they are imported, hence the stand-in for one.
"""

import stand_in  # type: ignore[import-not-found]  # noqa: F401
from marks import *  # type: ignore[import-not-found]  # noqa: F403
