"""From a model to faster kernels in it: what Amdahl's law predicts beside what is measured.

The models are examples of ``tasks/models`` in sizes that fill a device, for inference. Kernels for
their parts lie below ``model``, in Triton, without backward passes. The agent ``ours`` hands them
in with tunables as the tuner finds them fastest.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from timing import timing
from workplace import PLATFORM, ROOT, Ran, Workplace

KERNELS = Path(__file__).with_name("model")
PACKAGES = "modelled"
SAMPLES = 4
_GOAL = 0.10
_OPTIMISED = "--agent=optimised"
_PARTS, _LINES = 20, 12
_SESSION = 45
"""Seconds of a session of the tuner, which times about as many variants as a kernel has."""

_OPTIMISING = 150
"""Seconds of a session with its gates, about."""

_START = """\
import shutil, sys
from pathlib import Path

import tuner

kernel = Path(sys.argv[1])
(ours,) = Path(__file__).parent.rglob(f"kernels/{kernel.name}")
shutil.copyfile(ours, kernel)
sys.exit(tuner.main(sys.argv[1:]))
"""
_AGENT = f"""\
[[agent]]
name     = "ours"
command  = ["{{python}}", "{{files}}/start.py", "{{kernel}}", "--seconds={{seconds}}"]
files    = ["start.py", "kernels/*.py"]
files_of = "//toolchains/agents:tuner"
seconds  = {_SESSION}
"""


@dataclass(frozen=True)
class Sized:
    """An example model with other sizes.

    Attributes:
        example: the file below ``tasks/models``.
        constants: what stands at its top, by name.
    """

    name: str
    example: str
    constants: Mapping[str, object] = field(hash=False)

    def text(self) -> str:
        """The model file, without a loss. Raises ValueError for constants that it does not have."""
        text = (ROOT / "tasks/models" / self.example).read_text()
        for name, value in self.constants.items():
            text, count = re.subn(rf"(?m)^{name} = .*$", f"{name} = {value}", text)
            if count != 1:
                raise ValueError(f"{self.example} has {count} constants {name}")
        return text.partition("\n\n\ndef loss(")[0] + "\n"

    def kernels(self) -> dict[str, Path]:
        """Our kernels by part."""
        return {path.stem: path for path in sorted((KERNELS / self.name).glob("*.py"))}


MODELS = (
    Sized(
        "llama",
        "llama_tiny.py",
        {
            "VOCABULARY": 8192,
            "WIDTH": 2048,
            "HEADS": 16,
            "GROUPS": 4,
            "HIDDEN": 5632,
            "TOKENS": 4096,
            "DTYPE": "torch.bfloat16",
        },
    ),
    Sized(
        "gpt2",
        "gpt2_tiny.py",
        {"VOCABULARY": 8192, "WIDTH": 1024, "HEADS": 16, "TOKENS": 1024, "BATCH": 4},
    ),
)


def measure(
    workplace: Workplace,
    save: Callable[[Mapping[str, Any]], None],
    models: Sequence[Sized] = MODELS,
) -> dict[str, Any]:
    """Profile, extract, optimise, verify each model; ``save`` gets what there is after each step.

    All models are verified before any is verified without each of its kernels.
    """
    found: dict[str, Any] = {model.name: {"sizes": _named(model)} for model in models}
    for model in models:
        for step, row in _steps(workplace, model):
            found[model.name][step] = row
            save(found)
    for model in models:
        ran = _model(workplace, "verify", _directory(workplace, model), _OPTIMISED)
        found[model.name]["without_each"] = verified(ran)
        save(found)
    return found


def _named(model: Sized) -> dict[str, str]:
    return {name: str(value) for name, value in model.constants.items()}


def _directory(workplace: Workplace, model: Sized) -> Path:
    return workplace.root / PACKAGES / model.name


def _steps(workplace: Workplace, model: Sized) -> Iterator[tuple[str, Any]]:
    """Each step and what came of it; later ones are left out where one fails."""
    file = workplace.root / f"{model.name}.py"
    file.write_text(model.text())
    ran = _model(workplace, "profile", file, "--compiled")
    profile = ran.json
    yield "profile", _profile(ran)
    if ran.code:
        return
    known = {part["name"] for part in profile["parts"]}
    wanted = [name for name in model.kernels() if name in known]
    yield "without_a_part", sorted({*model.kernels()} - {*wanted})
    directory = _directory(workplace, model)
    parts = [f"--part={name}" for name in wanted]
    flags = (f"--samples={SAMPLES}", f"--output={directory}")
    ran = _model(workplace, "extract", file, *flags, *parts)
    yield "extract", {**_said(ran), **_kept(ran, "admitted", "left_out")}
    if ran.code:
        return
    budget = f"--budget={len(wanted) * _OPTIMISING}s"
    agent = _declare_ours(workplace, model)
    ran = _model(workplace, "optimise", directory, agent, budget, "--stalled=1")
    yield "optimise", {**_said(ran), **_kept(ran, "end", "predicted", "parts")}
    ran = _model(workplace, "verify", directory, _OPTIMISED, "--noleave_out")
    yield "verify", verified(ran)
    for variant in ("all", "none"):
        yield f"timing_{variant}", _timing(workplace, model, variant)


def _declare_ours(workplace: Workplace, model: Sized) -> str:
    """Declare the agent that hands in our kernels, tuned; returns the flag that names it."""
    package = workplace.root / "ours" / model.name
    (package / "kernels").mkdir(parents=True, exist_ok=True)
    for kernel in model.kernels().values():
        shutil.copy(kernel, package / "kernels")
    (package / "start.py").write_text(_START)
    (package / "BUILD.toml").write_text(_AGENT)
    return f"--agent=//ours/{model.name}:ours"


def _timing(workplace: Workplace, model: Sized, variant: str) -> dict[str, Any]:
    """How the whole model was timed with a variant's kernels, out of the cache."""
    label = f"//{PACKAGES}/{model.name}/whole"
    file = workplace.root / "out/model" / model.name / f"{variant}.py"
    workplace.test(label, f"--solution={file}", "--gates=compile,correctness,perf")
    samples = workplace.read(f"{label.removeprefix('//')}:whole.perf", "samples.json")
    return {**timing(workplace, label), "samples": samples.get("configs", {})}


def _model(workplace: Workplace, command: str, path: Path, *flags: str) -> Ran:
    given = ("model", command, str(path), *flags, PLATFORM, "--json", *workplace.flags)
    return workplace.kabuild(*given)


def _said(ran: Ran) -> dict[str, Any]:
    """How a call ended; its last lines where it ended badly, else what each action took."""
    lines = [line for line in ran.err.splitlines() if line.strip()]
    done = [line for line in lines if re.match(r"\[\d+/\d+\]", line)]
    said = lines[-4 * _LINES :] if ran.code else done
    return {"exit_code": ran.code, "seconds": round(ran.seconds, 1), "said": said}


def _kept(ran: Ran, *names: str) -> dict[str, Any]:
    found = ran.json
    return {name: found[name] for name in names if name in found}


def _profile(ran: Ran) -> dict[str, Any]:
    """The profile without its flame graph, and with the slowest parts only."""
    kept = _kept(ran, "device", "torch", "eager_seconds", "graph_seconds", "roofs", "training")
    parts = [
        {name: part[name] for name in ("name", "calls", "seconds", "share", "bound", "roof_share")}
        for part in ran.json.get("parts", [])[:_PARTS]
    ]
    compiled = dict(ran.json.get("compiled", {}))
    compiled["kernels"] = compiled.get("kernels", [])[:_PARTS]
    return {**_said(ran), **kept, "parts": parts, "compiled": compiled}


def verified(ran: Ran) -> dict[str, Any]:
    """What ``model verify`` says, and how far the prediction is from what was measured.

    Both are speedups of the model's operators: with all kernels, over the same graph with none.
    ``difference`` is the prediction's, in parts of what was measured.
    """
    names = ("predicted", "parts", "unsolved", "variants", "compiled", "ended")
    found = {**_said(ran), **_kept(ran, *names)}
    for variant in found.get("variants", []):
        variant.pop("file", None)  # a path of the machine
    if found.get("compiled"):
        found["compiled"] = {**found["compiled"], "kernels": []}
    speedups = {
        variant["name"]: (variant["speedup"] or {}).get("speedup")
        for variant in found.get("variants", [])
    }
    if not (predicted := found.get("predicted")) or not (base := speedups.get("none")):
        return found
    if not (whole := speedups.get("all")):
        return found
    measured = whole / base
    difference = predicted / measured - 1
    return {
        **found,
        "measured": round(measured, 4),
        "difference": round(difference, 4),
        "within_10_percent": abs(difference) <= _GOAL,
    }


def saver(file: Path) -> Callable[[Mapping[str, Any]], None]:
    """Writes to ``file`` each time that it is called."""

    def save(found: Mapping[str, Any]) -> None:
        file.write_text(json.dumps(found, indent=1, sort_keys=True))

    return save
