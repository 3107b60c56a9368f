"""Whether a task's own code multiplies single precision as TF32, where a device does by default.

PyTorch's convolutions and recurrent layers do on NVIDIA's devices, and so does Triton's ``dot``.
Their results then are as exact as those from half precision. ``torch.matmul`` does not by default.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Self

from torch.overrides import TorchFunctionMode

_LAYERS = re.compile(r"_?conv(olution|\d|_tbc|_transpose\d)\w*|lstm|gru|rnn_tanh|rnn_relu")
_DOT = re.compile(rb"\b(?:tl|triton\.language|language)\.dot\(")
_EXACT = re.compile(rb"input_precision\s*=\s*[\"']ieee|allow_tf32\s*=\s*False")


class Watch(TorchFunctionMode):
    """Notes whether the code in its context calls such a layer.

    Attributes:
        multiplied: whether it has.
    """

    def __init__(self) -> None:
        super().__init__()
        self.multiplied = False

    def __enter__(self) -> Self:
        super().__enter__()  # type: ignore[no-untyped-call]  # PyTorch has no types
        return self

    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        name = getattr(function, "__name__", "")
        self.multiplied = self.multiplied or _LAYERS.fullmatch(name) is not None
        return function(*args, **(kwargs or {}))


def has_dot(text: bytes) -> bool:
    """Whether the text of a kernel in Triton has a product in the default precision."""
    return bool(_DOT.search(text)) and not _EXACT.search(text)


def takes_single(attrs: Mapping[str, Any]) -> bool:
    """Whether a task with these attributes has arguments or weights in single precision."""
    texts = [*attrs["inputs"].values(), *attrs.get("state", {}).values()]
    kinds = {str(text).partition("[")[0].strip() for text in texts}
    return "f32" in kinds or ("T" in kinds and "f32" in attrs["dtypes"])
