"""What of a kernel's results a script compares, and whether they are what it expects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor

from imported.boundary import LeftOutError
from imported.script_stage import Seen

_SMALL = ("int8", "uint8")

LOOSE = 0.03
"""How far a kernel may be from what its script expects, of the value and of the typical value."""


def compared(
    fresh: Mapping[str, Tensor], changed: Mapping[str, Tensor], said: Seen
) -> dict[str, Any]:
    """Which results are outputs, and where their expected values are. Raises LeftOutError."""
    if said.other:
        raise LeftOutError("SEVERAL_CALLS", f"its check calls '{said.other}', too")
    computed = {**fresh, **changed}
    answers = _answers(computed, said)
    known = {*said.expected, *answers}
    outputs = [name for name in fresh if name in known]
    unseen = [name for name in changed if name not in known]
    if unseen or not (outputs or changed):
        what = f"what the call leaves in '{unseen[0]}'" if unseen else "a result of the call"
        raise LeftOutError(
            "OUTPUT_UNCHECKED", f"its script compares {what} with no tensor as a whole"
        )
    stepped = {
        name: str(computed[name].dtype).removeprefix("torch.")
        for name in (*outputs, *changed)
        if name in said.stepped and name not in answers
    }
    for name in (*outputs, *changed):
        step = 1.0 if name in quantised(stepped, outputs) else 0.0
        if name not in answers and not close(computed[name], said.expected[name], step):
            what = f"its kernel's '{name}' is not what its script expects of the same arguments"
            raise LeftOutError("REFERENCE_DIFFERS", what)
    return {"outputs": outputs, "answers": answers, "stepped": stepped}


def quantised(stepped: Mapping[str, str], outputs: Sequence[str]) -> dict[str, str]:
    """How results are compared that a script compares as floats, though they are small integers."""
    small = (name for name, kind in stepped.items() if name in outputs and kind in _SMALL)
    return dict.fromkeys(small, "quantised")


def close(one: Tensor, other: Tensor, step: float = 0.0) -> bool:
    """Whether a kernel computed what is expected; integers may be off by ``step``."""
    if one.shape != other.shape:
        return False
    if not one.is_floating_point():
        return bool(((one.double() - other.double()).abs() <= step).all())
    a, b = one.double(), other.double()
    finite = b.isfinite()
    typical = b[finite].square().mean().sqrt() if bool(finite.any()) else 0.0
    allowed = LOOSE * (b.abs() + typical)
    near = (a - b).abs() <= allowed
    return bool((near | ~finite & ((a == b) | (a.isnan() & b.isnan()))).all())


def _answers(computed: Mapping[str, Tensor], said: Seen) -> dict[str, int]:
    """Where the script's own functions answer for what it compares in part, or not at all."""
    found = {}
    for name, tensor in computed.items():
        if name in said.expected and close(tensor, said.expected[name]):
            continue
        equal = (i for i, answer in enumerate(said.answers) if close(tensor, answer))
        if (index := next(equal, None)) is not None:
            found[name] = index
    return found
