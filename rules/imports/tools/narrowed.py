"""The boundary of tasks whose reference returns wider numbers than those it is given.

It is beside the solution in the runner, as a task's ``adapter.py``.
"""

from __future__ import annotations

from typing import Any

import candidate  # type: ignore[import-not-found]
import torch


def narrowed(data: Any, kind: torch.dtype) -> Any:
    """What the solution returns for ``data``; in ``kind``, where it is wider, as a reference's."""
    function = getattr(candidate, "custom_kernel", None) or candidate.ref_kernel
    result = function(data)
    return result.to(kind) if getattr(result, "dtype", kind) is torch.float64 else result
