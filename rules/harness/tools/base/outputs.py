"""The outputs of one call."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


class Outputs(dict[str, "Tensor"]):
    """One call's outputs, by name.

    Attributes:
        reused: the outputs whose memory a later call of the batch also returned. They hold what
            that call wrote. This is not a fault if the results are equal.
    """

    def __init__(self, tensors: Mapping[str, Tensor], reused: Collection[str] = ()) -> None:
        super().__init__(tensors)
        self.reused = tuple(reused)
