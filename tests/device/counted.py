"""Counts on the CPU what a profiler is to count on a device.

    python tests/device/counted.py DIRECTORY

Declares a task for each kernel of ``KERNELS`` in a copy of the repository, runs ``kabuild analyze``
on all of them with waves of 32 lanes, as NVIDIA's processors have them, and writes
``DIRECTORY/counts.json`` for the stage ``analysis`` of ``run_all.sh``. Needs no GPU.
"""

from __future__ import annotations

import hashlib
import json
import platform
import re
import shutil
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
sys.path.append(str(Path(__file__).parents[2] / "rules/harness/tools"))

from base.seeds import artifact_digest
from description import revision
from workplace import ROOT, Workplace

from kabuild.analysis import analyze
from kabuild.loading import Loader, expand, load_workspace
from kabuild.model.action import Literal
from kabuild.model.options import Options
from kabuild.model.platform import Platform

FILE = "counts.json"
PACKAGES = "counted"
AGENT = "expert"
WARP = 32
_HONEST = ROOT / "tests/bench/honest/hip2hip"
_PROBES = ROOT / "tests/toolchains/hip/kernels/counting.hip"
_OF_THE_CPU = re.compile(r"^\[\w+\.platform_configs\]\n.*\Z", re.MULTILINE | re.DOTALL)
_NAME = re.compile(r"(?m)^(name +=) .*")
_PROBES_BUILD = """\
[[hip2hip]]
name      = "probes"
kernel    = "probes.hip"
reference = "reference.py"
brief     = "Kernels whose accesses can be counted by hand, one after the other."
entry     = "probes"
inputs    = { x = "T[n]" }
outputs   = { y = "T[n]", counts = "i32[64]" }
dims      = { n = "8192..8192" }
dtypes    = ["f32"]
configs   = [ { n = 8192 } ]
flops     = "n"
"""
_PROBES_ENTRY = """
#include <stdint.h>
extern "C" hipError_t probes_f32(const float* x, float* y, int* counts, int64_t n,
                                 hipStream_t stream) {
  return run(x, y, counts);
}
"""
_PROBES_REFERENCE = """\
import torch


def inputs(config, generator):
    return {"x": torch.randn(config["n"], generator=generator, dtype=config["dtype"])}


def reference(x, **_):
    return {"y": x, "counts": torch.zeros(64, dtype=torch.int32)}
"""


@dataclass(frozen=True)
class Kernel:
    """A kernel of one of our tasks.

    Attributes:
        task: below ``tasks``.
        variant: ``expert``, ``given``, or the name of an honest variant.
    """

    task: str
    variant: str
    file: Path

    @property
    def name(self) -> str:
        """Its package below ``PACKAGES``."""
        return f"{self.task.rpartition('/')[2]}_{self.variant}"


def kernels(root: Path = ROOT) -> Iterator[Kernel]:
    """Experts of HIP tasks, the kernels that these tasks give, and honest variants of these."""
    for expert in sorted((root / "tasks").glob("*2hip/*/solutions/expert")):
        package = expert.parents[1]
        task, file = f"{package.parent.name}/{package.name}", f"{package.name}.hip"
        yield Kernel(task, "expert", expert / file)
        if package.parent.name == "hip2hip":  # elsewhere what is given computes nothing
            yield Kernel(task, "given", package / file)
    for path in sorted(_HONEST.glob("*/*.hip")):
        yield Kernel(f"hip2hip/{path.parent.name}", path.stem, path)


def declare(workplace: Workplace) -> None:
    """Write a task for each kernel, with the configs of GPUs, and one for the probes."""
    packages = workplace.root / PACKAGES
    for kernel in kernels():
        _declare(kernel, packages / kernel.name)
    probes = packages / "probes"
    source = _PROBES.read_text() + _PROBES_ENTRY
    written = {
        "BUILD.toml": _PROBES_BUILD,
        "reference.py": _PROBES_REFERENCE,
        "probes.hip": source,
        f"solutions/{AGENT}/probes.hip": source,
    }
    for path, text in written.items():
        (probes / path).parent.mkdir(parents=True, exist_ok=True)
        (probes / path).write_text(text)


def _declare(kernel: Kernel, package: Path) -> None:
    shutil.copytree(ROOT / "tasks" / kernel.task, package, dirs_exist_ok=True)
    build = _OF_THE_CPU.sub("", (package / "BUILD.toml").read_text())
    renamed = _NAME.sub(rf'\1 "{kernel.name}"', build, count=1)
    (package / "BUILD.toml").write_text(renamed)
    (task,) = next(iter(tomllib.loads(renamed).values()))
    shutil.copy(kernel.file, package / "solutions" / AGENT / task["kernel"])


def count(workplace: Workplace) -> dict[str, Any]:
    """What is counted of each kernel, by its name, with what the gate was told to call.

    Raises SystemExit where some kernel was not counted.
    """
    declare(workplace)
    count_for_warps(workplace)
    ran = workplace.kabuild("analyze", f"//{PACKAGES}/...", f"--agent={AGENT}", "--json")
    if ran.code:
        raise SystemExit(ran.err)
    specs_of = specs(workplace.root, [f"//{PACKAGES}/..."])
    return {
        "revision": revision(),
        "warp": WARP,
        "kernels": {
            label.rpartition("/")[2]: {
                "spec": specs_of[label],
                "artifact": _digest(workplace, label.rpartition("/")[2]),
                "source": source_digest(workplace, label.rpartition("/")[2]),
                "analysis": analysis,
            }
            for label, analysis in ran.json.items()
        },
    }


def source_digest(workplace: Workplace, name: str) -> str:
    """Of the kernel's source, as it is in a workplace."""
    (solution,) = (workplace.root / PACKAGES / name / "solutions" / AGENT).iterdir()
    return hashlib.sha256(solution.read_bytes()).hexdigest()


def _digest(workplace: Workplace, name: str) -> str:
    """Of the library that was counted: the seeds of its inputs depend on it."""
    path = workplace.output(f"{PACKAGES}/{name}:{name}.analyze.compile", "kernel.so")
    return artifact_digest([path])


def count_for_warps(workplace: Workplace) -> None:
    """Have the copy's kernels run with waves as NVIDIA's processors have them."""
    hip = workplace.root / "toolchains/hip/BUILD.toml"
    hip.write_text(hip.read_text().replace('"cpu"\n', f'"cpu"\nwave = "{WARP}"\n', 1))


def specs(root: Path, patterns: Sequence[str]) -> Mapping[str, Any]:
    """By task, what the gate ``analyze`` is told: its ``spec.json``."""
    loader = Loader(load_workspace(root))
    here = Platform("cpu", (("arch", platform.machine()),))
    options = Options(here, loader.workspace.agent_label(AGENT))
    analysis = analyze(loader, expand(loader, patterns), options)
    found = {}
    for action in analysis.graph:
        if action.label.name.endswith(".analyze"):
            spec = dict(action.inputs)["spec.json"]
            assert isinstance(spec, Literal)
            found[f"//{action.label.package}"] = json.loads(spec.data)
    return found


def read(directory: Path) -> dict[str, Any]:
    """What ``main`` has left there. Raises OSError and ValueError."""
    counts: dict[str, Any] = json.loads((directory / FILE).read_bytes())
    if counts.get("warp") != WARP:
        raise ValueError(f"{directory / FILE} does not hold counts of warps of {WARP}")
    return counts


def main() -> None:
    """Count all kernels."""
    if len(sys.argv) != 2:
        raise SystemExit("usage: counted.py DIRECTORY")
    out = Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        counts = count(Workplace.copied(Path(folder)))
    (out / FILE).write_text(json.dumps(counts, sort_keys=True))
    print(f"counted {len(counts['kernels'])} kernels")


if __name__ == "__main__":
    main()
