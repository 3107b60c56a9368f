"""What is refused as a compiled model, and why."""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from torch import Tensor

ROOT = Path(__file__).parents[3]

sys.path.insert(0, str(ROOT / "rules/model/tools"))

from modelled import inductor
from modelled.inductor import NotCompiledError, compiled, set_up, told


@pytest.fixture(autouse=True)
def _nothing_compiled(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(inductor, "_made", lambda: ["a module"])
    yield
    torch._dynamo.reset()


def wrong(factor: float) -> Callable[..., Callable[..., Tensor]]:
    return lambda module, **_: lambda x: module(x) * factor


def test_a_python_without_headers_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sysconfig, "get_path", lambda _: str(tmp_path))

    with pytest.raises(NotCompiledError, match="this Python has no headers; install those"):
        set_up("/nowhere")


@pytest.mark.parametrize("factor", [1.0, 1 + 1e-5])
def test_rounding_is_forgiven(monkeypatch: pytest.MonkeyPatch, factor: float) -> None:
    monkeypatch.setattr(torch, "compile", wrong(factor))

    call = compiled(torch.nn.ReLU(), [torch.ones(4)])

    assert call(torch.ones(4)).tolist() == pytest.approx([factor] * 4)


@pytest.mark.parametrize("factor", [1.001, float("nan")])
def test_a_compiled_model_with_other_results_is_no_baseline(
    monkeypatch: pytest.MonkeyPatch, factor: float
) -> None:
    monkeypatch.setattr(torch, "compile", wrong(factor))

    with pytest.raises(NotCompiledError, match=r"its results are .* apart from eager's"):
        compiled(torch.nn.ReLU(), [torch.ones(4)])


def test_what_was_not_compiled_is_never_taken_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "compile", wrong(1.0))
    monkeypatch.setattr(inductor, "_made", list)

    with pytest.raises(NotCompiledError, match="it made no kernel"):
        compiled(torch.nn.ReLU(), [torch.ones(4)])


def test_a_compiler_that_fails_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: Tensor) -> Tensor:
        raise RuntimeError("C++ compile error\nmany lines")

    monkeypatch.setattr(torch, "compile", lambda *_, **__: broken)

    with pytest.raises(NotCompiledError, match=r"it ended with RuntimeError: C\+\+ compile error$"):
        compiled(torch.nn.ReLU(), [torch.ones(4)])


def test_shares_are_of_all_kernels() -> None:
    rows = [
        inductor.Kernel("cpp_fused_mul_0", fused=True, calls=2, seconds=3.0),
        inductor.Kernel("aten::mm", fused=False, calls=1, seconds=1.0),
    ]

    assert [row["share"] for row in told(rows)] == [0.75, 0.25]
