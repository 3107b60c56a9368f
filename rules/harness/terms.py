"""The vocabulary of judging, for rules: ``tools/terms``, which has another name in sandboxes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # type checkers must not see one module under two names
    from terms import gates, reasons
    from terms.correctness import CorrectnessPolicy
    from terms.dtypes import DTYPES, ELEMENT, FLOATING, INTEGERS, ONLY_GIVEN, PLAIN, SEEDS, STEPPED
    from terms.perf import PerfPolicy
    from terms.policy import DISTRIBUTIONS, JudgingPolicy
    from terms.scoring import POLICIES
    from terms.tolerance import TF32
    from terms.unseen import UnseenPolicy
else:
    from .tools.terms import gates, reasons
    from .tools.terms.correctness import CorrectnessPolicy
    from .tools.terms.dtypes import (
        DTYPES,
        ELEMENT,
        FLOATING,
        INTEGERS,
        ONLY_GIVEN,
        PLAIN,
        SEEDS,
        STEPPED,
    )
    from .tools.terms.perf import PerfPolicy
    from .tools.terms.policy import DISTRIBUTIONS, JudgingPolicy
    from .tools.terms.scoring import POLICIES
    from .tools.terms.tolerance import TF32
    from .tools.terms.unseen import UnseenPolicy

__all__ = [
    "DISTRIBUTIONS",
    "DTYPES",
    "ELEMENT",
    "FLOATING",
    "INTEGERS",
    "ONLY_GIVEN",
    "PLAIN",
    "POLICIES",
    "SEEDS",
    "STEPPED",
    "TF32",
    "CorrectnessPolicy",
    "JudgingPolicy",
    "PerfPolicy",
    "UnseenPolicy",
    "gates",
    "reasons",
]
