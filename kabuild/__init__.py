"""kabuild: hermetic build and evaluation of GPU kernels written by agents.

From Python: ``kabuild.evaluate`` and ``kabuild.Evaluator``, see ``kabuild.api``.
"""

from kabuild.base.lazy import lazy_names
from kabuild.base.version import __version__

TYPE_CHECKING = False  # typing's own name for it takes 9 ms, and Ctrl-C is not heeded yet
if TYPE_CHECKING:
    from kabuild.api import (
        BrokenTaskError,
        Evaluation,
        Evaluator,
        InfraFailureError,
        Options,
        evaluate,
    )

__all__ = [
    "BrokenTaskError",
    "Evaluation",
    "Evaluator",
    "InfraFailureError",
    "Options",
    "__version__",
    "evaluate",
]

__getattr__ = lazy_names(
    __name__,
    {
        "BrokenTaskError": "api",
        "Evaluation": "api",
        "Evaluator": "api",
        "InfraFailureError": "api",
        "Options": "api",
        "evaluate": "api",
    },
)
