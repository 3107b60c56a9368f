"""True outputs that are computed when they are needed.

In double precision the outputs of all calls of a batch take several times the memory of the
batch, which a device may not have. The latest are kept, as a judge goes from call to call. Others
are kept while they and their inputs, which they hold, fit into a memory limit, as the other side
gets the same inputs.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping

from base.program import Config
from torch import Tensor

from truth.oracle import Oracle
from truth.recent import Recent

_LARGE_BYTES = 1 << 28


class LazyOutputs:
    """Computes answers of one oracle, and remembers the latest.

    Attributes:
        recent: answers, by their ``LazyOutput``.
        seconds: by config, the least time of the host that an answer took.
    """

    def __init__(self, oracle: Oracle) -> None:
        self.recent: Recent[Mapping[str, Tensor]] = Recent()
        self.seconds: dict[str, float] = {}
        self._oracle = oracle
        self._latest: tuple[LazyOutput, Mapping[str, Tensor]] | None = None

    def to(self, config: Config, inputs: Mapping[str, Tensor], own_bytes: int) -> LazyOutput:
        """The outputs for ``inputs``, to be computed later.

        ``own_bytes`` of the inputs are held for this call alone.
        """
        return LazyOutput(self, config, inputs, own_bytes)

    def forget_large(self) -> None:
        """Drop the latest answer if it or its inputs, which it holds, are large."""
        if self._latest is not None:
            answer, found = self._latest
            if bytes_of(found) + bytes_of(answer.inputs) > _LARGE_BYTES:
                self._latest = None

    def compute(self, answer: LazyOutput) -> Mapping[str, Tensor]:
        """The tensors of ``answer``. Raises TaskFault."""
        if self._latest is not None and self._latest[0] is answer:
            return self._latest[1]
        self._latest = None  # free the memory first
        found: Mapping[str, Tensor] | None = self.recent.get(answer)
        if found is None:
            began, name = time.perf_counter(), answer.config.name
            found = self._oracle.expected(answer.config, answer.inputs)
            took = time.perf_counter() - began
            self.seconds[name] = min(took, self.seconds.get(name, took))
            self.recent.put(answer, found, max(bytes_of(found), answer.own_bytes))
        self._latest = (answer, found)
        return found


def bytes_of(tensors: Mapping[str, Tensor]) -> int:
    """The size of some tensors, in bytes."""
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors.values())


class LazyOutput(Mapping[str, Tensor]):
    """The true outputs of one call, by name. Equal only to itself."""

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other

    def __init__(
        self,
        source: LazyOutputs,
        config: Config,
        inputs: Mapping[str, Tensor],
        own_bytes: int,
    ) -> None:
        self.config = config
        self.inputs = inputs
        self.own_bytes = own_bytes
        self._source = source

    def __getitem__(self, name: str) -> Tensor:
        return self._source.compute(self)[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._source.compute(self))

    def __len__(self) -> int:
        return len(self._source.compute(self))
