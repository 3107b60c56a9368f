"""Compiles every kernel that Triton modules launch, for GPUs that are not there.

    python triton_ahead.py JOBS.json

A job is {folder, module, target: [backend, arch, warp size], dims, dtype}. The module's entry is
called with tensors of the task's oracle; each launch is compiled with the arguments that it was
given. Prints one JSON list a job: [[kernel, bytes of shared memory], ...], or the error as text.
"""

# mypy: allow-untyped-defs, allow-untyped-calls

import importlib.util
import json
import sys
import tomllib
import traceback
from pathlib import Path

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.runtime import jit

OPTIONS = ("num_warps", "num_stages")


def load(path, name):
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def compile_launch(target, function, args, kwargs):
    """Compile one launch as Triton's own launcher would have; give its shared memory."""
    own = {name: value for name, value in kwargs.items() if name in function.arg_names}
    bound = function.signature.bind(*args, **own).arguments
    constants = {p.name for p in function.params if p.is_constexpr}
    signature = {
        name: "constexpr" if name in constants else jit.mangle_type(value)
        for name, value in bound.items()
    }
    fixed = {name: value for name, value in bound.items() if name in constants}
    options = {name: kwargs[name] for name in OPTIONS if name in kwargs}
    source = ASTSource(fn=function, signature=signature, constexprs=fixed)
    return triton.compile(source, target=target, options=options).metadata.shared


def run(job):
    """Give the launches of one job."""
    folder = Path(job["folder"])
    (task,) = tomllib.loads((folder / "BUILD.toml").read_text())["triton2triton"]
    dims, scalars = job["dims"], task.get("scalars", {})
    oracle = load(folder / "reference.py", "reference")
    config = {**scalars, **dims, "dtype": getattr(torch, job["dtype"]), "distribution": "default"}
    inputs = oracle.inputs(config, torch.Generator().manual_seed(0))
    outputs = oracle.reference(**inputs, **scalars, **dims)
    target, launches = GPUTarget(*job["target"]), []

    def launch(self, *args, grid, warmup, **kwargs):
        launches.append([self.__name__, compile_launch(target, self, args, kwargs)])

    jit.JITFunction.run = launch
    torch.version.hip = "6.0" if target.backend == "hip" else None
    entry = getattr(load(job["module"], "module"), task["entry"])
    entry(*inputs.values(), *outputs.values(), **scalars, **dims)
    return launches


def main(path):
    for job in json.loads(Path(path).read_text()):
        try:
            print(json.dumps(run(job)), flush=True)
        except Exception:  # noqa: BLE001 - whatever the compiler raises is the job's result
            print(json.dumps(traceback.format_exc()), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
