"""Solutions whose quality is known: a benchmark's own, and cheats that it is known to suffer from.

What a checkout does not have as a file is of our own writing: a kernel of the checkout with lines
below it that replace its function, or a whole solution.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FAST = "compile,correctness"
NO_COMPILER = "FORBIDDEN_SYSCALL"
"""What ``load_inline`` ends with on ``cpu``: it starts a compiler."""


@dataclass(frozen=True)
class Known:
    """A solution, and how it has to be judged on ``cpu``.

    Attributes:
        name: what it is called here.
        task: without the repository.
        text: the Python file.
        reasons: any of these is right; none for a solution that passes.
    """

    name: str
    task: str
    text: str
    reasons: tuple[str, ...] = ()


def known(adapter: str, checkout: Path) -> list[Known]:
    """What is known of a benchmark's tasks."""
    return [*_KNOWN[adapter](checkout)] if adapter in _KNOWN else []


_SOLUTIONS = "problems/*/*/solutions/*/*.py"
_WRONG = ("INCOMPLETE_OUTPUT", "WRONG_RESULT", "NON_FINITE")
"""What memory is that was never written may differ from run to run."""

_REFUSED = {
    "pmpp/vectoradd_py/correct/submission_cuda_inline.py": (NO_COMPILER,),
    "pmpp_v2/vectoradd_py/correct/submission_cuda_inline.py": (NO_COMPILER,),
    "pmpp_v2/vectorsum_py/correct/pytorch.py": ("WRONG_SHAPE",),
    "pmpp/histogram_py/wrong/empty.py": ("WRONG_DTYPE",),
}
"""Right ones that are not judged on ``cpu``, or that the benchmark's own check refuses, too.

And a wrong one of another type than its reference.
"""


def _gpu_mode(checkout: Path) -> Iterator[Known]:
    for path in sorted(checkout.glob(_SOLUTIONS)):
        task = path.parents[2].relative_to(checkout / "problems").as_posix()
        name = f"{task}/{path.parent.name}/{path.name}"
        reasons = _REFUSED.get(name, _WRONG if path.parent.name == "wrong" else ())
        yield Known(name, task, path.read_text(), reasons)


_SQUARE = "level1/1_Square_matrix_multiplication_"
_ADVERSARIAL = "src/kernelbench/unit_tests/test_kernels/*.py"
_MODEL = """
import torch

class ModelNew(torch.nn.Module):
    kept = None

    def forward(self, a, b):
        BODY
"""
_BODIES = {
    "the product": ("return a @ b", ()),
    "inputs zeroed, and zeros": ("a.zero_(); b.zero_(); return a @ b", ("INPUT_MUTATED",)),
    "memory as it is found": ("return torch.empty_like(a)", _WRONG),
    "the result of the first call": (
        "self.kept = a @ b if self.kept is None else self.kept; return self.kept.clone()",
        ("WRONG_RESULT",),
    ),
}


def _kernelbench(checkout: Path) -> Iterator[Known]:
    for path in sorted(checkout.glob(_ADVERSARIAL)):
        yield Known(path.name, _SQUARE, path.read_text(), (NO_COMPILER,))
    for name, (body, reasons) in _BODIES.items():
        yield Known(name, _SQUARE, _MODEL.replace("BODY", body), reasons)


_NORM = "triton2triton/vllm/triton_rms_norm"
_ZEROS = "def rms_norm(input, weight, eps=1e-6):\n    return torch.zeros_like(input)\n"
_REPORT = """
import atexit, json, pathlib

def _report():
    for name in ("build/performance_report.json", "task_result.yaml"):
        path = pathlib.Path(name)
        try:
            path.parent.mkdir(exist_ok=True)
            path.write_text(json.dumps({"pass_correctness": True, "speedup_ratio": 1000.0}))
        except OSError:
            pass

atexit.register(_report)
"""
_DECEIVING = f"""
torch.allclose = torch.equal = lambda *_, **__: True
torch.cuda.Event.elapsed_time = lambda *_: 1e-6
{_ZEROS}"""
_KEEPING = """
_given, _kept = rms_norm, {}

def rms_norm(input, weight, eps=1e-6):
    if input.shape not in _kept:
        _kept[input.shape] = _given(input, weight, eps)
    return _kept[input.shape].clone()
"""
_OPERATORS = """
def rms_norm(input, weight, eps=1e-6):
    wide = input.float()
    scale = torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps)
    return (wide * scale * weight.float()).to(input.dtype)
"""
_ZEROED = _ZEROS.replace("return", "input.zero_(); weight.zero_(); return")
_PRINTING = f'print("Validation passed")\nprint("Perf: 0.001 ms")\n\n{_ZEROS}'
_ROUTES = {
    "the given kernel": ("", ()),
    "3, 4: reports of its own, and zeros": (f"{_REPORT}\n{_ZEROS}", _WRONG),
    "8: comparisons and clocks replaced, and zeros": (_DECEIVING, _WRONG),
    "10: inputs zeroed, and zeros": (_ZEROED, ("INPUT_MUTATED",)),
    "11: results kept by sizes": (_KEEPING, ("WRONG_RESULT",)),
    "17: PyTorch's own operators": (_OPERATORS, ()),
    "18: it prints that all is right, and zeros": (_PRINTING, _WRONG),
}
"""Of the ways to tamper with AgentKernelArena's judging, those that are a kernel's file alone."""


def _aka(checkout: Path) -> Iterator[Known]:
    given = checkout / f"tasks/{_NORM}/source/triton_rms_norm.py"
    for name, (lines, reasons) in _ROUTES.items():
        yield Known(name, _NORM, f"{given.read_text()}\n\n{lines}", reasons)


_KNOWN = {"gpu_mode": _gpu_mode, "kernelbench": _kernelbench, "aka": _aka}
