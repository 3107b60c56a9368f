"""The stage ``model``, on any machine."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from models import MODELS, Sized, saver, verified
from workplace import ROOT, Ran

sys.path.insert(0, str(ROOT / "rules/model/tools"))

from modelled.graph import export
from modelled.units import find_units
from modelled.user_model import load


def ran(variants: dict[str, float], predicted: float | None) -> Ran:
    rows = [
        {"name": name, "speedup": {"speedup": value} if value else None}
        for name, value in variants.items()
    ]
    out = json.dumps({"predicted": predicted, "variants": rows, "compiled": {"kernels": [1]}})
    return Ran(0, out, "[1/2] Perf //a:a.perf PASS 3 s\nanother line\n", 12.34)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_each_kernel_is_one_of_a_part_of_its_model(model: Sized, tmp_path: Path) -> None:
    """In any sizes: a small model is divided as a large one."""
    small = {k: v for k, v in model.constants.items() if k == "DTYPE"}
    file = tmp_path / "model.py"
    file.write_text(Sized(model.name, model.example, small).text())

    parts = {unit.name for unit in find_units(export(load(file)))}

    assert model.kernels()
    assert {*model.kernels()} <= parts


def test_a_model_gets_its_sizes() -> None:
    text = MODELS[0].text()

    assert "\nWIDTH = 2048\n" in text
    assert "\nDTYPE = torch.bfloat16\n" in text
    with pytest.raises(ValueError, match=r"llama_tiny\.py has 0 constants DEPTH"):
        Sized("llama", "llama_tiny.py", {"DEPTH": 3}).text()


@pytest.mark.parametrize(
    ("predicted", "difference", "close"), [(1.5, 0.0, True), (1.62, 0.08, True), (1.8, 0.2, False)]
)
def test_a_prediction_is_compared_with_the_same_graph(
    predicted: float, difference: float, close: bool
) -> None:
    found = verified(ran({"all": 1.8, "none": 1.2}, predicted))

    assert found["measured"] == 1.5
    assert found["difference"] == pytest.approx(difference)
    assert found["within_10_percent"] is close
    assert found["said"] == ["[1/2] Perf //a:a.perf PASS 3 s"]


@pytest.mark.parametrize("variants", [{}, {"all": 2.0}, {"all": 2.0, "none": 0.0}])
def test_what_was_not_measured_is_not_compared(variants: dict[str, float]) -> None:
    found: dict[str, Any] = verified(ran(variants, 1.5))

    assert "difference" not in found


def test_what_broke_off_says_its_last_lines() -> None:
    found = verified(Ran(124, "", "first\nlast\n", 3.0))

    assert found == {"exit_code": 124, "seconds": 3.0, "said": ["first", "last"]}


def test_each_piece_is_written_at_once(tmp_path: Path) -> None:
    save = saver(tmp_path / "model.json")

    save({"llama": {"profile": 1}})

    assert json.loads((tmp_path / "model.json").read_text()) == {"llama": {"profile": 1}}
