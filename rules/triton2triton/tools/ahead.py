"""Compiles a module's kernels for a GPU that need not be there, in a sandbox of their own.

The module is the candidate's and is run: its entry chooses which kernels are launched, and with
which constants. It shares a process with what writes the report, so a hostile one can write that
itself. It gains nothing: the report is bounded and read as data, and decides only what this
gate says of the module's own kernels. A compile error that it hides is met again where the module
is judged, and no later gate reads the figures or gets another module for them.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import sys
import time
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernel_source import MachineFault
from namespaces import (  # type: ignore[import-not-found]
    Bind,
    Limits,
    SandboxError,
    View,
    fork_contained,
    system_binds,
)

CANDIDATE = "/candidate"
_REPORT_BYTES = 1 << 20
_START_SECONDS = 120.0
_SECONDS = 120.0
_TMP = "/tmp"  # noqa: S108 - the sandbox's own
_TMP_BYTES = 512 << 20
_MEMORY = 4 << 30
_PROCESSES = 64
_TEXT = 2000
_READY = b"ready\n"
"""What the report begins with: from there on, what goes wrong is the candidate's."""
_HIP = Path(__file__).resolve().parents[1] / "hip"
"""What reads compiled kernels."""

_PLATFORMS = _HIP.with_name("platforms")
"""What it knows of their architectures."""


@dataclass(frozen=True)
class Compiled:
    """The result of compiling a module.

    Attributes:
        kernels: what a launch of each takes of the processor, as a GPU's own compile gate says.
        error: where and why a kernel does not compile; empty where all did.
        detail: the lines that belong to the error.
        left_out: why not all could be compiled without the GPU; empty where all were.
    """

    kernels: tuple[Mapping[str, Any], ...] = ()
    error: str = ""
    detail: str = ""
    left_out: str = ""


def compile_ahead(source: Path, spec: Path) -> Compiled:
    """Run the module's entry on each of the task's configs, without data or a GPU.

    Raises MachineFault when that was not possible, whatever the module is.
    """
    text = spec.read_text("utf-8")
    module = Path(CANDIDATE) / source.name
    read, write = os.pipe()
    try:
        pid = fork_contained(
            _view(source),
            Limits(memory_bytes=_MEMORY, processes=_PROCESSES, file_bytes=_TMP_BYTES),
            lambda: _work(module, json.loads(text), write),
            keep_fds=(write,),
        )
    except SandboxError as error:
        os.close(read)
        raise MachineFault(f"no sandbox to run the module in: {error}") from error
    finally:
        os.close(write)
    with os.fdopen(read, "rb", buffering=0) as pipe:
        ready, _ = _read(pipe.fileno(), len(_READY), _START_SECONDS)
        report, limit = _read(pipe.fileno(), _REPORT_BYTES, _SECONDS)
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    if ready != _READY:
        said = (ready + report).decode("utf-8", "replace")
        raise MachineFault(said or limit or "Triton's compiler did not start")
    return _understood(report, limit)


def _work(module: Path, spec: Mapping[str, Any], report: int) -> int:
    """In the sandbox: what follows imports torch, Triton and, when all is ready, the candidate."""
    try:
        sys.path += [str(_HIP / "common"), str(_HIP / spec["platform"] / "driver")]
        os.environ["TRITON_CACHE_DIR"] = f"{_TMP}/triton"
        import ahead_run

        run = ahead_run.prepare(module, spec)
    except Exception:  # noqa: BLE001 - nobody reads what this process prints
        os.write(report, traceback.format_exc().encode("utf-8", "replace"))
        return 1
    os.write(report, _READY)
    _write(report, json.dumps(run()).encode("utf-8", "backslashreplace"))
    return 0


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def _view(source: Path) -> View:
    """The view of the sandbox: the module, these tools, and this Python."""
    binds = [*system_binds(), Bind(str(source.absolute()), f"{CANDIDATE}/{source.name}")]
    binds += [Bind(path, path) for path in _python_paths()]
    return View(binds=tuple(binds), tmpfs=((_TMP, _TMP_BYTES),), cwd=_TMP, hostname="compiler")


def _python_paths() -> Iterator[str]:
    """The trees that this interpreter imports from."""
    own = (Path(__file__).resolve().parent, _HIP, _PLATFORMS)
    packages = (path for path in sys.path if Path(path).name.endswith("-packages"))
    seen: list[str] = ["/usr", "/lib", "/bin"]
    for named in (sys.base_prefix, sys.prefix, *map(str, own), *packages):
        for path in _ways(named):
            if Path(path).is_dir() and not any(Path(path).is_relative_to(other) for other in seen):
                seen.append(path)
                yield path


def _ways(path: str) -> Iterator[str]:
    """The place that ``path`` leads to, then itself and the links on the way there."""
    yield os.path.realpath(path)
    yield path
    while Path(path).is_symlink():
        path = os.path.normpath(Path(path).parent.resolve() / Path(path).readlink())
        yield path


def _read(descriptor: int, most: int, seconds: float) -> tuple[bytes, str]:
    """Read up to ``most`` bytes; returns them, and the limit that ended reading early, if any."""
    report = b""
    deadline = time.monotonic() + seconds
    while len(report) < most:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([descriptor], [], [], left)[0]:
            return report, f"running it took longer than {seconds:.0f} s"
        data = os.read(descriptor, most - len(report))
        if not data:
            return report, ""
        report += data
    return report, "it writes where only the compiler does"


def _understood(report: bytes, limit: str) -> Compiled:
    """Parse the report, which is untrusted: only its form is checked."""
    try:
        said = json.loads(report)
        kernels = tuple(_kernel(kernel) for kernel in said["kernels"])
        texts = [_text(said[name]) for name in ("error", "detail", "left_out")]
    except (ValueError, KeyError, TypeError, RecursionError):
        return Compiled(left_out=limit or "running it ended early")
    return Compiled(kernels, *texts)


def _kernel(said: object) -> Mapping[str, Any]:
    if not isinstance(said, dict):
        raise TypeError("a kernel's figures are expected")
    if not all(isinstance(value, str | int) for value in said.values()):
        raise TypeError("a kernel's values are numbers and names")
    return {_text(k): _text(v) if isinstance(v, str) else v for k, v in sorted(said.items())}


def _text(said: object) -> str:
    if not isinstance(said, str):
        raise TypeError("a text is expected")
    return said[:_TEXT]
