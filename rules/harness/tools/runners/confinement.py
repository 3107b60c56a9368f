"""The files, limits and environment of a runner."""

from __future__ import annotations

import mmap
import os
import resource
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from base.device_platform import DevicePlatform, device_platform
from base.places import ADAPTER, BINARIES, MODULES
from base.program import Program, RunnerPolicy
from namespaces import (  # type: ignore[import-not-found]
    Bind,
    Limits,
    View,
    system_binds,
)

from runners import driver_front

CANDIDATE = "/candidate"
RUNNER = "/runner"
CACHE = "/cache"
LIBRARIES = "/runner/lib"
TMP = "/tmp"  # noqa: S108 - the sandbox's own
COMPILING = {"TORCHINDUCTOR_COMPILE_THREADS": "1"}  # more processes would each import torch again
ENVIRONMENT = {"HOME": TMP, "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}
_SHM = "/dev/shm"  # noqa: S108 - the sandbox's own, and of no use here
_SYS = Path("/sys")
_OPEN_FILES = 256
_STACK_BYTES = 16 << 20
_SYSTEM = ("/usr", "/lib", "/bin")
_SEARCHED = "LD_LIBRARY_PATH"


def view(
    program: Program,
    policy: RunnerPolicy,
    more: Sequence[Sequence[str]] = (),
    front: driver_front.Front | None = None,
) -> View:
    """The runner's view of the file system: the candidate, its dependencies, a private ``/tmp``.

    ``more`` are pairs of a path here and its path in the sandbox; ``front`` replaces the driver.
    Raises ValueError for a ``hip`` program without a runner.
    """
    binds = [*system_binds(), Bind(_absolute(program.path), candidate_path(program))]
    more_files = {ADAPTER: program.adapter, MODULES: program.modules, BINARIES: program.binaries}
    binds += [Bind(_absolute(path), place) for place, path in more_files.items() if path]
    if program.on_device:
        binds += device_binds(device_platform(program.platform))
    if front:
        if not _is_below(front.folder, _SYSTEM):
            binds.append(Bind(front.folder, front.folder))
        binds.append(Bind(front.place_of_driver(program), front.driver))
        if program.abi == "hip":
            binds.append(Bind(front.native, driver_front.FOLDER))
    if policy.cache:
        binds.append(Bind(policy.cache, CACHE, writable=True))
    if program.abi == "hip":
        if program.runner is None:
            raise ValueError("a program of the hip ABI needs a native runner")
        binds.append(Bind(_absolute(program.runner), native_runner_path(program)))
        pairs = zip(program.libraries, library_paths(program), strict=True)
        binds += [Bind(_absolute(library), path) for library, path in pairs]
    else:
        binds += [Bind(path, path) for path in _python_paths()]
    binds += [Bind(_absolute(here), there) for here, there in more]
    return View(
        binds=tuple(dict.fromkeys(binds)),  # the loader's search path may name a file twice
        tmpfs=((TMP, policy.tmp_bytes), (_SHM, mmap.PAGESIZE)),
        cwd=TMP,
        hostname="runner",
    )


def limits(program: Program, policy: RunnerPolicy) -> Limits:
    """The limits of the process; memory is on top of that of the process it is forked from."""
    base = 0 if program.abi == "hip" else _private_bytes()
    return Limits(
        memory_bytes=base + policy.memory_bytes,
        cpu_seconds=policy.cpu_seconds,
        processes=policy.threads,
        file_bytes=policy.tmp_bytes,
        open_files=_OPEN_FILES,
        stack_bytes=_STACK_BYTES,
    )


def limit_address_space(program: Program, policy: RunnerPolicy) -> None:
    """Limit shared mappings, which the sandbox's limit on private memory does not count.

    They get the same amount again, for the buffers that the judge shares.
    """
    if program.on_device:
        return  # drivers reserve far more address space than there is memory
    base = 0 if program.abi == "hip" else _statm()[0] * mmap.PAGESIZE
    total = base + 2 * policy.memory_bytes
    resource.setrlimit(resource.RLIMIT_AS, (total, total))


def environment(program: Program, policy: RunnerPolicy, driver_folder: str = "") -> dict[str, str]:
    """The runner's environment variables; ``driver_folder`` has libraries that the driver needs."""
    variables = dict(ENVIRONMENT)
    if program.on_device:
        platform = device_platform(program.platform)
        variables |= _caches(platform, CACHE if policy.cache else TMP)
        inherited = (*platform.variables, _SEARCHED)
        variables |= {name: os.environ[name] for name in inherited if name in os.environ}
    if program.launch_filter and program.abi == "hip":
        others = variables.get(_SEARCHED)
        folders = (driver_front.FOLDER, others, driver_folder)
        variables[_SEARCHED] = ":".join(filter(None, folders))
    if not policy.launches:
        variables["KABUILD_CPU_LAUNCHES"] = "skip"
    return variables


def _caches(platform: DevicePlatform, folder: str) -> dict[str, str]:
    """The directories in which code compiled at the first call is cached."""
    return {
        **{variable: f"{folder}/{name}" for variable, name in platform.caches.items()},
        "TRITON_CACHE_DIR": f"{folder}/triton",
        "TORCHINDUCTOR_CACHE_DIR": f"{folder}/inductor",
        **COMPILING,
    }


def device_binds(platform: DevicePlatform) -> Iterator[Bind]:
    """The paths of the platform's devices that a runner needs, as far as this process sees them.

    Device files, the kernel's descriptions of them, and the driver's libraries.

    The libraries are mostly below ``/usr``, which every runner sees; others are found by the
    loader's search path.
    """
    for pattern in platform.device_files:
        for path in sorted(Path("/dev").glob(pattern)):
            yield Bind(str(path), str(path), writable=True)
    for name in platform.descriptions:
        path = _SYS / name
        if path.exists():
            yield Bind(str(path), str(path))
            cards = {card.resolve() for card in path.glob("renderD*/device")}
            yield from (Bind(str(card), str(card)) for card in sorted(cards))
    for folder in os.environ.get("LD_LIBRARY_PATH", "").split(":"):
        path = Path(folder)
        if folder and path.is_dir() and not _is_below(path, _SYSTEM):
            yield Bind(str(path.absolute()), str(path.absolute()))


def candidate_path(program: Program) -> str:
    """Where the runner sees the candidate."""
    return f"{CANDIDATE}/{Path(program.path).name}"


def mentions_triton(path: str) -> bool:
    """Whether a Python file may contain Triton kernels."""
    return b"triton" in Path(path).read_bytes()


def native_runner_path(program: Program) -> str:
    """Where the native runner sees itself."""
    return f"{RUNNER}/{Path(program.runner or '').name}"


def library_paths(program: Program) -> tuple[str, ...]:
    """Where the native runner sees the candidate's libraries."""
    return tuple(f"{LIBRARIES}/{Path(library).name}" for library in program.libraries)


def _python_paths() -> Iterator[str]:
    """The trees that this interpreter imports from; never its working directory."""
    here = str(Path(__file__).resolve().parents[1])
    packages = (path for path in sys.path if Path(path).name.endswith("-packages"))
    seen: list[str] = list(_SYSTEM)
    for named in (sys.base_prefix, sys.prefix, here, *packages):
        for path in _ways(named):
            if Path(path).is_dir() and not _is_below(path, seen):
                seen.append(path)
                yield path


def _ways(path: str) -> Iterator[str]:
    """The real path of ``path``, then ``path`` itself and the links along the way."""
    yield os.path.realpath(path)
    yield path
    while Path(path).is_symlink():
        path = os.path.normpath(Path(path).parent.resolve() / Path(path).readlink())
        yield path


def _is_below(path: str | Path, others: Sequence[str]) -> bool:
    return any(Path(path).is_relative_to(other) for other in others)


def _absolute(path: str) -> str:
    return str(Path(path).absolute())


def _private_bytes() -> int:
    return _statm()[5] * mmap.PAGESIZE  # data and stack, as RLIMIT_DATA counts them


def _statm() -> list[int]:
    return [int(field) for field in Path("/proc/self/statm").read_text().split()]
