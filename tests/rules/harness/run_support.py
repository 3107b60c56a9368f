"""Real candidates for the tests of the runners: compiled C, and Python files."""

# mypy: allow-untyped-defs, allow-untyped-calls, allow-incomplete-defs

import functools
import tempfile
import textwrap
from pathlib import Path

import torch
from base.program import (
    Abi,
    Argument,
    CandidateFault,
    Config,
    Program,
    RunnerPolicy,
    Signature,
)

from tests.testkit.c_compiler import run_cc

ROOT = Path(__file__).parents[3]
TOOLS = ROOT / "rules" / "harness" / "tools"
QUICK = RunnerPolicy(call_seconds=0.1, batch_seconds=0.4)  # for those that hang
DOUBLING = Signature((Argument("x", "T", ("n",)),), (Argument("y", "T", ("n",)),), (), ("n",))


@functools.cache
def scratch() -> Path:
    """A folder for what several test files share; it goes when Python ends."""
    folder = tempfile.TemporaryDirectory(prefix="kabuild-run-")
    KEPT.append(folder)
    return Path(folder.name)


KEPT: list[tempfile.TemporaryDirectory[str]] = []


@functools.cache
def native_runner() -> str:
    """The native runner for this machine."""
    return build_native_runner(scratch() / "hip-runner")


def build_native_runner(out: Path, *flags: str) -> str:
    """The native runner, built from its sources without a C++ library."""
    folders = (TOOLS / "runner", TOOLS / "runner_host")
    sources = sorted(str(path) for folder in folders for path in folder.glob("*.cpp"))
    strict = ["-std=c++17", "-O2", "-Wall", "-Wextra", "-Werror", "-fno-exceptions", "-fno-rtti"]
    return compile_to(out, [*flags, *strict, *sources])


@functools.cache
def library(source: str, *flags: str) -> str:
    """A shared library of C source."""
    number = len(list(scratch().glob("*.c")))
    file = scratch() / f"candidate{number}.c"
    file.write_text(textwrap.dedent(source))
    flags = ("-shared", "-fPIC", "-O1", "-pthread", *flags)
    return compile_to(file.with_suffix(".so"), [*flags, str(file)])


def compile_to(out: Path, arguments: list[str]) -> str:
    run_cc("-o", str(out), *arguments)
    return str(out)


def native(source: str, entry: str, *flags: str) -> Program:
    return Program("hip", library(source, *flags), entry, (), native_runner())


def module(folder: Path, source: str, entry: str, abi: Abi = "python") -> Program:
    file = folder / "candidate.py"
    file.write_text(textwrap.dedent(source))
    return Program(abi, str(file), entry)


def config(n: int = 1000, dtype: str = "f32", **scalars) -> Config:
    return Config(f"{dtype} n={n}", {"n": n}, dtype, scalars)


def draws(count: int, n: int = 1000) -> list[dict[str, torch.Tensor]]:
    return [{"x": torch.randn(n)} for _ in range(count)]


def run_doubling(launcher, program, policy=None, batches=1, calls=3, signature=DOUBLING):
    """Run a candidate that should double its input; its batches, and the inputs of each."""
    seen = []
    with launcher.open(program, signature, policy) as runner:
        runner.load(config(), calls)
        for _ in range(batches):
            inputs = draws(calls)
            seen.append((inputs, runner.batch(inputs)))
    return seen


def is_doubled(inputs, batch) -> bool:
    pairs = zip(inputs, batch.outputs, strict=True)
    return all(torch.equal(outputs["y"], 2 * tensors["x"]) for tensors, outputs in pairs)


def fault_of(launcher, program, policy=None, batches=1) -> CandidateFault:
    """The fault that a candidate ends with, when it is run as `run_doubling` does."""
    try:
        run_doubling(launcher, program, policy, batches)
    except CandidateFault as fault:
        return fault
    raise AssertionError(f"{program.entry} was not caught")
