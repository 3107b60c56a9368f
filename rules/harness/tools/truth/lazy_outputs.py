"""True outputs that are computed when they are needed.

In double precision the outputs of all calls of a batch take several times the memory of the
batch, which a device does not have. Only the latest are kept: a judge goes from call to call.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from base.program import Config
from torch import Tensor

from truth.oracle import Oracle


class LazyOutputs:
    """Computes answers of one oracle, and remembers the latest."""

    def __init__(self, oracle: Oracle) -> None:
        self._oracle = oracle
        self._latest: tuple[LazyOutput, Mapping[str, Tensor]] | None = None

    def to(self, config: Config, inputs: Mapping[str, Tensor]) -> LazyOutput:
        """The outputs for ``inputs``, to be computed later."""
        return LazyOutput(self, config, inputs)

    def compute(self, answer: LazyOutput) -> Mapping[str, Tensor]:
        """The tensors of ``answer``. Raises TaskFault."""
        if self._latest is None or self._latest[0] is not answer:
            self._latest = None  # first give the memory back
            self._latest = (answer, self._oracle.expected(answer.config, answer.inputs))
        return self._latest[1]


class LazyOutput(Mapping[str, Tensor]):
    """The true outputs of one call, by name."""

    def __init__(self, source: LazyOutputs, config: Config, inputs: Mapping[str, Tensor]) -> None:
        self.config = config
        self.inputs = inputs
        self._source = source

    def __getitem__(self, name: str) -> Tensor:
        return self._source.compute(self)[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._source.compute(self))

    def __len__(self) -> int:
        return len(self._source.compute(self))
