"""What is believed of a compiled model, and how it is shown."""

from __future__ import annotations

from typing import Any

import pytest

from kabuild.neural.compiled import Compiled, render_compiled

FACTS: dict[str, Any] = {
    "schema": 1,
    "absent": "",
    "seconds": 0.002,
    "speedup": 2.0,
    "speedup_low": 1.9,
    "speedup_high": 2.1,
    "kernels": [
        {"name": f"cpp_{'x' * 100}_0", "fused": True, "calls": 2, "seconds": 0.001, "share": 0.75},
        {"name": "aten::mm", "fused": False, "calls": 1, "seconds": 0.0003, "share": 0.25},
    ],
}


def test_kernels_fit_in_a_terminal() -> None:
    text = render_compiled(Compiled.read(FACTS))

    assert text.startswith("torch.compile over eager: 2.00x ±5 %, 2 ms a call\n")
    assert max(map(len, text.splitlines())) <= 80
    beside = str(Compiled.read({**FACTS, "eager_seconds": 0.004}))
    assert beside == "torch.compile over eager: 2.00x ±5 %, 2 ms a call, eager 4 ms beside it"
    assert "and 1 more kernels" in render_compiled(Compiled.read(FACTS), most=1)


@pytest.mark.parametrize(
    "changed",
    [
        {"schema": 2},
        {"speedup": None},
        {"speedup": float("nan")},
        {"seconds": float("inf")},
        {"eager_seconds": -1},
        {"absent": 3},
        {"kernels": [{**FACTS["kernels"][0], "share": float("nan")}]},
        {"kernels": [{**FACTS["kernels"][0], "name": 7}]},
    ],
)
def test_facts_of_another_form_are_refused(changed: dict[str, Any]) -> None:
    with pytest.raises((ValueError, TypeError, LookupError)):
        Compiled.read({**FACTS, **changed})


def test_without_figures_there_is_a_sentence() -> None:
    found = Compiled.read({"schema": 1, "absent": "this Python has no headers"})

    assert found.speedup is None
    assert render_compiled(found) == "no figures of torch.compile: this Python has no headers"
