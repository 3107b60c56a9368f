"""What building one small kernel as an extension of PyTorch takes.

python extension.py FOLDER
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.utils import cpp_extension

_DECLARATION = "torch::Tensor doubled(torch::Tensor x);"
_SOURCE = """
#include <torch/extension.h>
__global__ void doubling(const float* x, float* y, long n) {
  long i = blockIdx.x * 256L + threadIdx.x;
  if (i < n) y[i] = 2.0f * x[i];
}
torch::Tensor doubled(torch::Tensor x) {
  auto y = torch::empty_like(x);
  long n = x.numel();
  doubling<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
  return y;
}
"""


def measure(folder: Path) -> dict[str, object]:
    """Seconds of ``load_inline``, and whether what it has built works."""
    started = time.monotonic()
    load: Callable[..., Any] = cpp_extension.load_inline
    module = load(
        name="doubled",
        cpp_sources=_DECLARATION,
        cuda_sources=_SOURCE,
        functions=["doubled"],
        build_directory=str(folder),
    )
    seconds = time.monotonic() - started
    x = torch.arange(1000.0, device="cuda")
    return {"seconds": round(seconds, 2), "works": bool(torch.equal(module.doubled(x), 2 * x))}


if __name__ == "__main__":
    print(json.dumps(measure(Path(sys.argv[1]))))
