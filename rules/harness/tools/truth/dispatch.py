"""The base of modes that see each operation of PyTorch."""

from __future__ import annotations

from torch.utils._python_dispatch import TorchDispatchMode


class UncompiledMode(TorchDispatchMode):
    """A dispatch mode that does not import PyTorch's compiler, which takes seconds."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """False: nothing is compiled here, so no compiler has to be told of this mode."""
        return False
