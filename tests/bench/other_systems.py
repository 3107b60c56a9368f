"""Other build systems, set up to do what ``tests.testkit.generated`` makes kabuild do.

N tasks in families of a hundred; five commands in a row for each, which read the task's kernel
and reference, what the command before made, and forty files that all share. Every system gets
the same files; each runs with its own defaults, in a fresh process, on two slots.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

GATES = 5
SHARED = tuple(f"rules/copied/data/part{number}.txt" for number in range(40))


@dataclass(frozen=True)
class Step:
    """One command: ``cat inputs > output``."""

    task: str
    gate: int
    inputs: tuple[str, ...]
    output: str


@dataclass(frozen=True)
class System:
    """A build system.

    Attributes:
        program: what it needs on PATH.
        write: leaves its build files in a workspace of so many tasks.
        command: builds everything.
        outputs: what to delete to have it restored from its cache; empty where it has none.
        stop: ends what it left running, so that each measurement is of a fresh process.
        isolated: whether a command sees nothing but its inputs.
    """

    name: str
    program: str
    write: Callable[[Path, int], None]
    command: tuple[str, ...]
    outputs: tuple[str, ...] = ()
    stop: tuple[str, ...] = ()
    isolated: bool = False

    @property
    def installed(self) -> bool:
        """Whether it can be run here."""
        return shutil.which(self.program) is not None

    def run(self, root: Path) -> None:
        """Build. Raises RuntimeError with the end of what it printed."""
        done = subprocess.run(self.command, cwd=root, capture_output=True, check=False)
        if done.returncode:
            tail = (done.stdout + done.stderr).decode(errors="replace").strip().splitlines()
            raise RuntimeError(tail[-1] if tail else f"exit code {done.returncode}")

    def rest(self, root: Path) -> None:
        """End its server."""
        if self.stop:
            subprocess.run(self.stop, cwd=root, capture_output=True, check=False)

    def forget_outputs(self, root: Path) -> None:
        """Delete what it made, and leave its cache."""
        for name in self.outputs:
            path = root / name
            if path.is_symlink() or path.is_file():
                path.unlink()
            else:
                shutil.rmtree(path, ignore_errors=True)


def steps(tasks: int) -> Iterator[Step]:
    """All commands, in an order in which they can run."""
    for number in range(tasks):
        task = f"tasks/family{number // 100}/t{number}"
        before: tuple[str, ...] = (f"{task}/kernel.hip", f"{task}/reference.py")
        for gate in range(GATES):
            output = f"{task}/made{gate}"
            yield Step(task, gate, (*before, *SHARED), output)
            before = (output,)


def _ninja(root: Path, tasks: int) -> None:
    lines = ["rule cat", "  command = cat $in > $out"]
    lines += [f"build made/{s.output}: cat {' '.join(_made(s))}" for s in steps(tasks)]
    (root / "build.ninja").write_text("\n".join(lines) + "\n")


def _scons(root: Path, tasks: int) -> None:
    lines = ["import os", "env = Environment(ENV=os.environ)", "CacheDir('.scons-cache')"]
    lines += [
        f"env.Command('made/{step.output}', {list(_made(step))!r}, 'cat $SOURCES > $TARGET')"
        for step in steps(tasks)
    ]
    (root / "SConstruct").write_text("\n".join(lines) + "\n")


def _doit(root: Path, tasks: int) -> None:
    rows = [
        (f"{step.task}/{step.gate}", list(_made(step)), f"made/{step.output}")
        for step in steps(tasks)
    ]
    for step in steps(tasks):
        (root / "made" / step.task).mkdir(parents=True, exist_ok=True)
    (root / "dodo.py").write_text(
        f"STEPS = {rows!r}\n"
        "def task_cat():\n"
        "    for name, inputs, output in STEPS:\n"
        "        yield {'name': name, 'file_dep': inputs, 'targets': [output],\n"
        "               'actions': ['cat ' + ' '.join(inputs) + ' > ' + output]}\n"
    )


def _snakemake(root: Path, tasks: int) -> None:
    last = [f"made/{step.output}" for step in steps(tasks) if step.gate == GATES - 1]
    rules = [f"rule all:\n    input: {last!r}\n"]
    for gate in range(GATES):
        own = (
            ["{task}/kernel.hip", "{task}/reference.py"]
            if gate == 0
            else [f"made/{{task}}/made{gate - 1}"]
        )
        rules.append(
            f"rule gate{gate}:\n    input: {[*own, *SHARED]!r}\n"
            f"    output: 'made/{{task}}/made{gate}'\n    shell: 'cat {{input}} > {{output}}'\n"
        )
    (root / "Snakefile").write_text("\n".join(rules))


def _bazel(root: Path, tasks: int) -> None:
    (root / "WORKSPACE").write_text("")
    (root / "rules/copied").joinpath("BUILD").write_text(
        'filegroup(name = "data", srcs = glob(["data/*"]), visibility = ["//visibility:public"])\n'
    )
    for step in steps(tasks):
        own = ["kernel.hip", "reference.py"] if step.gate == 0 else [f"made{step.gate - 1}"]
        with (root / step.task / "BUILD").open("a" if step.gate else "w") as file:
            file.write(
                f'genrule(name = "g{step.gate}", srcs = {own!r} + ["//rules/copied:data"], '
                f'outs = ["made{step.gate}"], cmd = "cat $(SRCS) > $@")\n'
            )


def _nix(root: Path, tasks: int) -> None:
    files = " ".join(f"./{name}" for name in SHARED)
    lines = [
        "let cat = name: inputs: derivation { inherit name inputs;",
        "  system = builtins.currentSystem;",
        '  builder = "/bin/sh"; PATH = "/bin:/usr/bin"; args = [ "-c" "cat $inputs > $out" ]; };',
        f"  shared = [ {files} ];",
    ]
    names = []
    for step in steps(tasks):
        name = f"{step.task.rpartition('/')[2]}g{step.gate}"
        own = (
            f"./{step.task}/kernel.hip ./{step.task}/reference.py"
            if step.gate == 0
            else f"{step.task.rpartition('/')[2]}g{step.gate - 1}"
        )
        lines.append(f'  {name} = cat "{name}" ([ {own} ] ++ shared);')
        names.append(name)
    lines.append(f"in [ {' '.join(names)} ]")
    (root / "default.nix").write_text("\n".join(lines) + "\n")


def _made(step: Step) -> tuple[str, ...]:
    """Inputs, with made ones where the system puts them."""
    return tuple(f"made/{name}" if "/made" in name else name for name in step.inputs)


_JOBS = "2"
_BAZEL = shutil.which("bazel") or shutil.which("bazel-real") or "bazel"

SYSTEMS = (
    System("ninja", "ninja", _ninja, ("ninja", "-j", _JOBS)),
    System("doit", "doit", _doit, ("doit", "-n", _JOBS)),
    System("SCons", "scons", _scons, ("scons", "-Q", "-j", _JOBS), outputs=("made",)),
    System(
        "Snakemake",
        "snakemake",
        _snakemake,
        ("snakemake", "--cores", _JOBS, "--quiet"),
    ),
    System(
        "Nix",
        "nix-build",
        _nix,
        ("nix-build", "--no-out-link", "-j", _JOBS, *os.environ.get("NIX_OPTIONS", "").split()),
    ),
    System(
        "Bazel",
        "bazel",
        _bazel,
        (_BAZEL, "build", f"--jobs={_JOBS}", "--disk_cache=.bazel-cache", "//..."),
        stop=(_BAZEL, "shutdown"),
        isolated=True,
    ),
)
