"""Beside a benchmark's kernel on a platform without GPU: tensors say that they are on one.

Kernels ask for it before they launch; on ``cpu`` Triton's interpreter runs the launches. Where
there is a GPU, nothing changes.
"""

from __future__ import annotations

import torch

if not torch.cuda.is_available():
    torch.Tensor.is_cuda = property(lambda _: True)  # type: ignore[assignment]
