"""A model's graph without any kernel: what kernels are compared with."""

from __future__ import annotations

import importlib.util
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

ROOT = Path(__file__).parents[3]
sys.path[:0] = [str(ROOT / "rules/model/tools"), str(ROOT / "rules/imports/tools")]

from model_tasks import tasks

from kabuild.neural.assemble import assemble
from kabuild.neural.packages import Graph, Known


class Counting(TorchDispatchMode):
    """Counts operations by what they make."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.made: Counter[tuple[object, ...]] = Counter()

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        result = function(*args, **(kwargs or {}))
        shape = tuple(result.shape) if isinstance(result, torch.Tensor) else ()
        self.made[str(function), shape] += 1
        return result


def module(file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def operations(file: Path) -> Counter[tuple[object, ...]]:
    """Of one call of the model in a file."""
    model = module(file)
    arguments = module(ROOT / "tasks/models/llama_tiny.py").inputs(torch.Generator())
    built = model.build()
    counting = Counting()
    with torch.no_grad(), counting:
        built(*arguments)
    return counting.made


@pytest.mark.parametrize("parts", [[], ["neg_cat_mul", "scaled_dot_product_attention"]])
def test_it_computes_what_the_model_does(tmp_path: Path, parts: list[str]) -> None:
    """A copy more would be counted as what the kernels gain, or as what they cost."""
    own = ROOT / "tasks/models/llama_tiny.py"
    facts = tasks(own, {"parts": parts, "name": "net"}, "cpu")
    assert [part["name"] for part in facts["parts"]] == parts
    known = Known("net", "cpu", {}, Graph.read(facts["graph"]))
    graph = tmp_path / "graph.py"
    graph.write_text(assemble(known, own.read_text(), {}))

    assert operations(graph) == operations(own)


CHECKED = """
_pytorch = {name}


def {name}(*arguments):
    assert all(a.is_contiguous() for a in arguments if isinstance(a, torch.Tensor))
    return _pytorch(*arguments)
"""


def test_a_kernel_gets_contiguous_tensors_as_in_its_task(tmp_path: Path) -> None:
    """It has been judged with no others, and may read memory in order."""
    own, name = ROOT / "tasks/models/llama_tiny.py", "scaled_dot_product_attention"
    facts = tasks(own, {"parts": [name], "name": "net"}, "cpu")
    kernel = facts["parts"][0]["kernel"] + CHECKED.format(name=name)
    known = Known("net", "cpu", {}, Graph.read(facts["graph"]))
    graph = tmp_path / "graph.py"
    graph.write_text(assemble(known, own.read_text(), {name: kernel}))

    assert operations(graph).total() > 0
