"""Runs the judge's gates on a device as their actions do: a directory, a spec, a verdict."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
TOOLS = ROOT / "rules" / "harness" / "tools"
SANDBOX = ("namespaces.py", "rootfs.py", "seccomp.py")
DECLARED = ("BUILD.toml", "task.toml")  # the second is no package of this workspace
GATE_SECONDS = 240.0
_TENSOR = re.compile(r"(\w+)\[(.*)\]")


@dataclass(frozen=True)
class Judged:
    """What one gate made of a candidate."""

    code: int
    seconds: float
    said: str
    verdict: Mapping[str, Any]
    samples: Mapping[str, Any]

    @property
    def summary(self) -> str:
        """One line: verdict, reason and summary; what the gate said where there is none."""
        if not self.verdict:
            return f"exit {self.code}: {self.said.strip()[-300:]}"
        named = (self.verdict["verdict"], self.verdict["reason"], self.verdict["summary"])
        return " ".join(filter(None, named))


class Workplace:
    """The directory in which gates run, with the judge's files and the runner in it."""

    def __init__(self, folder: Path, runner: Path) -> None:
        self.folder = folder
        shutil.rmtree(folder, ignore_errors=True)
        ignore = shutil.ignore_patterns("__pycache__")
        shutil.copytree(TOOLS, folder / "tools", ignore=ignore)
        for name in SANDBOX:
            shutil.copy(ROOT / "kabuild" / "sandbox" / name, folder / "tools")
        shutil.copy(runner, folder / "hip-runner")

    def judge(
        self,
        gate: str,
        task: Mapping[str, Any],
        candidate: Mapping[str, str],
        baseline: Mapping[str, str],
        **policy: Any,
    ) -> Judged:
        """Run one gate in a process of its own."""
        spec = {
            **task,
            "schema": 1,
            "gate": gate,
            "platform": "cuda",
            "candidate": dict(candidate),
            "baseline": dict(baseline),
            "libraries": [],
            "runner": "hip-runner",
            "salt": "kabuild-public-1",
            "policy": policy,
        }
        (self.folder / "spec.json").write_text(json.dumps(spec))
        shutil.rmtree(self.folder / "out", ignore_errors=True)
        started = time.monotonic()
        command = [sys.executable, "tools/gate.py", "spec.json"]
        try:
            ran = subprocess.run(
                command,
                cwd=self.folder,
                capture_output=True,
                text=True,
                check=False,
                timeout=GATE_SECONDS,
            )
        except subprocess.TimeoutExpired as expired:
            said = (expired.stderr or b"").decode(errors="replace")
            return Judged(124, GATE_SECONDS, said, {}, {})
        seconds = time.monotonic() - started
        out = self.folder / "out"
        return Judged(
            ran.returncode,
            seconds,
            ran.stderr,
            _read(out / "verdict.json"),
            _read(out / "samples.json"),
        )


def read_task(folder: Path, configs: Sequence[Mapping[str, Any]] = ()) -> dict[str, Any]:
    """The parts of a spec that a task's declaration gives; ``configs`` replace its own."""
    file = next(path for name in DECLARED if (path := folder / name).exists())
    declared = tomllib.loads(file.read_text())
    family, (task, *_) = next(iter(declared.items()))
    scalars = task.get("scalars", {})
    bounds = {k: [int(b) for b in v.split("..")] for k, v in task["dims"].items()}
    made = [_config(item, task, scalars) for item in configs or task["configs"]]
    return {
        "family": family,
        "entry": task["entry"],
        "reference": str(folder / "reference.py"),
        "signature": {
            "inputs": [_tensor(name, text) for name, text in task["inputs"].items()],
            "outputs": [_tensor(name, text) for name, text in task["outputs"].items()],
            "scalars": [[name, value] for name, value in scalars.items()],
            "dims": list(task["dims"]),
        },
        "space": {"dims": bounds, "dtypes": task["dtypes"]},
        "configs": made,
        "flops": task.get("flops", "0"),
        "limits": {"elements": 1 << 26},
        "compare": task.get("compare", {}),
    }


def _tensor(name: str, text: str) -> list[Any]:
    match = _TENSOR.fullmatch(text)
    assert match is not None, text
    return [name, match[1], [part.strip() for part in match[2].split(",")]]


def _config(
    item: Mapping[str, Any], task: Mapping[str, Any], scalars: Mapping[str, Any]
) -> dict[str, Any]:
    dims = {name: item[name] for name in task["dims"]}
    dtype = item.get("dtype", task["dtypes"][0])
    name = " ".join((dtype, *(f"{key}={value}" for key, value in dims.items())))
    values = {key: item.get(key, value) for key, value in scalars.items()}
    return {"name": name, "dims": dims, "dtype": dtype, "scalars": values}


def _read(path: Path) -> Any:
    return json.loads(path.read_bytes()) if path.exists() else {}
