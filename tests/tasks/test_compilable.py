"""What tasks give torch.compile in place of their baseline computes the same."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
import torch
from base.program import Program
from pyrunner.module import load_entry

ROOT = Path(__file__).parents[2]
ROPE = ROOT / "tasks/torch2hip/rope/reference.py"


@pytest.fixture(name="rope")
def _rope() -> ModuleType:
    spec = importlib.util.spec_from_file_location("rope_reference", ROPE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_rope_is_the_same_in_both_words(rope: ModuleType, dtype: torch.dtype) -> None:
    config = {"batch": 2, "heads": 3, "seq": 5, "half": 4, "dtype": dtype}
    inputs = rope.inputs(config, torch.Generator().manual_seed(1))

    found = rope.compilable(**inputs)["y"]

    exact = rope.reference(**{name: value.double() for name, value in inputs.items()})["y"]
    assert found.dtype == dtype
    torch.testing.assert_close(found.double(), exact, rtol=8e-3, atol=8e-3)


@pytest.mark.parametrize(
    ("mode", "entry"), [("", "baseline"), ("max-autotune-no-cudagraphs", "compilable")]
)
def test_only_a_compiled_baseline_is_said_in_other_words(mode: str, entry: str) -> None:
    program = Program("torch", str(ROPE), "baseline", mode=mode)

    assert load_entry(program, str(ROPE)).__name__ == entry
