"""The boundary of tasks that ask for gradients: a solution's ``backward``, else PyTorch's.

It is beside the solution in the runner, as a task's ``adapter.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import candidate  # type: ignore[import-not-found]
import torch


def gradients(
    arguments: Sequence[Any], forward: Sequence[Any], wanted: Sequence[int], given: torch.Tensor
) -> Any:
    """The gradients of the arguments ``wanted`` of ``forward_fn``, one tensor or several.

    A solution gets ``arguments``. The task's own file has no ``backward``: it is called forward
    with ``forward``, and PyTorch derives the gradients from ``given``, that of the result.
    """
    answer = getattr(candidate, "backward", None)
    if answer is not None:
        return answer(*arguments)
    leaves = list(forward)
    for index in wanted:
        leaves[index] = leaves[index].detach().requires_grad_()
    with torch.enable_grad():
        result = candidate.forward_fn(*leaves)
    found = torch.autograd.grad(result, [leaves[index] for index in wanted], given)
    parts = [part.contiguous() for part in found]
    return parts if len(parts) > 1 else parts[0]
