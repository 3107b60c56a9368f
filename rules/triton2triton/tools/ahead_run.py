"""In the sandbox: runs a candidate's entry where every launch only compiles its kernel."""

from __future__ import annotations

import base64
import importlib
import importlib.util
import json
import sys
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from ahead_platform import AheadPlatform, ahead_platform
from ahead_stand_in import Records, stand_in
from base.program import Argument
from base.shapes import evaluate
from base.tensors import torch_dtype
from terms.launcher_types import MOST_LAUNCHERS, are_plain
from triton.compiler.errors import CompilationError
from triton.runtime.errors import OutOfResources

_MODULE = "candidate"
_BINARY_BYTES = 32 << 20


def prepare(path: Path, spec: Mapping[str, Any], cache: Path) -> Callable[[], dict[str, Any]]:
    """The function that runs the module at ``path``.

    It returns a report of JSON values: the kernels, an error with its line, why some were left out,
    and the files that Triton has in the folder ``cache``.
    """
    platform = ahead_platform(spec["platform"])
    records = stand_in(platform, spec["arch"])
    return lambda: _report(path, spec, platform, records, cache)


def _report(
    path: Path,
    spec: Mapping[str, Any],
    platform: AheadPlatform,
    records: Records,
    cache: Path,
) -> dict[str, Any]:
    said: dict[str, Any] = {"error": "", "line": 0, "left_out": "", "binaries": {}}
    is_call = "call" in spec
    try:
        if is_call:
            device = platform.device(spec["arch"]).torch_device
            importlib.import_module("ahead_call").call_all(path, spec, device)
        else:
            _call_all(path, spec)
    except CompilationError as error:
        said["line"], said["error"] = _placed(error, path)
    except OutOfResources as error:
        said["line"], said["error"] = _line_of(error, path), str(error)
    except BaseException as error:  # noqa: BLE001 - whatever the candidate raises, it is told
        said["left_out"] = f"without a GPU it raises {type(error).__name__}: {error}"
    if is_call or not (said["error"] or said["left_out"]):
        said["binaries"] = _binaries(cache, platform.handed_on)
    said["launchers"] = _launchers(records)
    said["kernels"] = _described(records, platform, spec["arch"])
    return said


def _binaries(cache: Path, suffixes: tuple[str, ...]) -> dict[str, str]:
    """The compiled kernels as their runners find them; none if they are too large to hand on.

    Nothing in them says where this machine has its compiler.
    """
    files = sorted(path for path in cache.glob("*/*") if path.suffix in suffixes)
    data = {path.relative_to(cache).as_posix(): _portable(path) for path in files}
    if sum(map(len, data.values())) > _BINARY_BYTES:
        return {}
    return {name: base64.b64encode(content).decode() for name, content in data.items()}


def _launchers(records: Records) -> list[str]:
    """The types of the kernels' parameters, as far as the code that launches them needs them."""
    found = set()
    for kernel in records:
        types = list(kernel.src.signature.values())
        if all(isinstance(each, str) for each in types):
            found.add(",".join("*" if each.startswith("*") else each for each in types))
    return sorted(filter(are_plain, found))[:MOST_LAUNCHERS]


def _portable(path: Path) -> bytes:
    """A file of Triton's cache; a kernel's metadata without the libraries that were linked in."""
    if path.suffix != ".json":
        return path.read_bytes()
    metadata = json.loads(path.read_bytes())
    if "extern_libs" in metadata:
        metadata["extern_libs"] = []
    return json.dumps(metadata, sort_keys=True).encode()


def _call_all(path: Path, spec: Mapping[str, Any]) -> None:
    """Call the entry as the harness does, on tensors that have a shape and no data."""
    entry = getattr(_load(path), spec["entry"])
    signature = spec["signature"]
    for config in spec["configs"]:
        tensors = [
            _tensor(Argument(*argument), config)
            for argument in (*signature["inputs"], *signature["outputs"])
        ]
        entry(*tensors, **config["scalars"], **config["dims"])


def _tensor(argument: Argument, config: Mapping[str, Any]) -> torch.Tensor:
    shape = [evaluate(expression, config["dims"]) for expression in argument.shape]
    name = config["dtype"] if argument.dtype == "T" else argument.dtype
    return torch.empty(shape, dtype=torch_dtype(name), device="meta")


def _load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(_MODULE, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[_MODULE] = module
    spec.loader.exec_module(module)
    return module


def _described(records: Records, platform: AheadPlatform, arch: str) -> list[dict[str, Any]]:
    """The resources of each kernel; equal ones are listed once."""
    found = [_resources(record, platform, arch) for record in records]
    unique = {json.dumps(kernel, sort_keys=True): kernel for kernel in found}
    return [unique[key] for key in sorted(unique)]


def _resources(record: Any, platform: AheadPlatform, arch: str) -> dict[str, Any]:
    return {
        **platform.resources(record, arch),
        "name": record.metadata.name,
        "num_warps": record.metadata.num_warps,
        "num_stages": record.metadata.num_stages,
    }


def _placed(error: CompilationError, path: Path) -> tuple[int, str]:
    """The line of the module where the innermost error is, and what it is."""
    inner: BaseException = error
    while isinstance(inner.__cause__, CompilationError):
        inner = inner.__cause__
    assert isinstance(inner, CompilationError)
    text = path.read_text("utf-8", "replace")
    first = text.find((inner.src or "").strip()) if inner.src else -1
    before = text[: max(first, 0)].count("\n")
    line = before + (getattr(inner.node, "lineno", None) or 1)
    return line, inner.error_message or str(inner.__cause__ or inner).splitlines()[-1]


def _line_of(error: BaseException, path: Path) -> int:
    """The innermost line of the module in the error's traceback: the launch."""
    frames = traceback.extract_tb(error.__traceback__)
    return max((frame.lineno or 1 for frame in frames if frame.filename == str(path)), default=1)
