"""The base class of modes that see each PyTorch operation."""

from __future__ import annotations

from torch.utils._python_dispatch import TorchDispatchMode


class UncompiledMode(TorchDispatchMode):
    """A dispatch mode that does not import PyTorch's compiler, which takes seconds."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """False: nothing is compiled here, so PyTorch's compiler need not know of this mode."""
        return False
