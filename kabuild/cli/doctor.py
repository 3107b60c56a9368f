"""``kabuild doctor``: what this machine can do, and how to get what is missing."""

from __future__ import annotations

import os
import platform as machine
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata
from importlib.util import cache_from_source, find_spec
from pathlib import Path
from typing import ClassVar

import click
import psutil

from kabuild.base.errors import LoadError
from kabuild.base.seal import key_problem
from kabuild.cli.doctor_devices import find_devices
from kabuild.cli.doctor_toolchains import find_toolchains
from kabuild.cli.finding import Finding, State, tell_findings
from kabuild.cli.flags import TargetFlags
from kabuild.cli.options import takes
from kabuild.cli.presentation import JsonFlags
from kabuild.cli.remote_flags import ServerFlags
from kabuild.loading.platform_index import PlatformIndex
from kabuild.model.platform import Installation
from kabuild.sandbox.namespaces import probe
from kabuild.store import default_path
from kabuild.store.paths import LEASES
from kabuild.toolchain.completeness import installation

_LEAST_KERNEL = (5, 12)  # mount_setattr


def _python() -> Iterator[Finding]:
    version = machine.python_version()
    good = sys.version_info >= (3, 11)
    advice = "" if good else "install Python 3.11 or newer"
    yield Finding("python", State.OK if good else State.PROBLEM, f"{version}", advice)
    for name, use in (
        ("torch", "the oracle and the judge"),
        ("triton", "triton2triton"),
        ("numpy", "Triton's interpreter"),
        ("ziglang", "the compiler of the cpu platform"),
    ):
        yield _distribution(name, use, State.PROBLEM)


def _bytecode() -> Iterator[Finding]:
    """Not every installer compiles Python's files, and sandboxes cannot write them."""
    found = find_spec("torch")
    if found is None or not found.submodule_search_locations:
        return
    folder = Path(found.submodule_search_locations[0])
    if Path(cache_from_source(str(folder / "functional.py"))).exists():
        yield Finding("bytecode", State.OK, "torch is compiled to .pyc files")
        return
    yield Finding(
        "bytecode",
        State.OPTIONAL,
        "torch has no .pyc files: every start of a judge takes seconds longer",
        f"{sys.executable} -m compileall -q -j 0 {folder.parent}",
    )


def _distribution(name: str, use: str, missing: State) -> Finding:
    try:
        return Finding(name, State.OK, f"{metadata.version(name)} ({use})")
    except metadata.PackageNotFoundError:
        advice = f"{sys.executable} -m pip install '{_requirement(name)}'"
        return Finding(name, missing, f"not installed ({use})", advice)


def _requirement(name: str) -> str:
    """The requirement on a distribution; only its name if none is known."""
    asked: list[str] = []
    with suppress(metadata.PackageNotFoundError):
        asked = metadata.requires("kabuild") or []
    named = (item.partition(";")[0].strip() for item in asked)
    return next((item for item in named if re.fullmatch(rf"{name}([=<>~!].*)?", item)), name)


def _kernel() -> Iterator[Finding]:
    release = machine.release()
    numbers = tuple(int(part) for part in re.findall(r"\d+", release)[:2])
    enough = machine.system() == "Linux" and numbers >= _LEAST_KERNEL
    advice = "" if enough else "sandboxes need Linux 5.12 or later"
    state = State.OK if enough else State.PROBLEM
    yield Finding("kernel", state, f"{machine.system()} {release}", advice)


def _sandbox() -> Iterator[Finding]:
    refused = probe()
    if refused is None:
        yield Finding("namespaces", State.OK, "user, mount, pid, net, ipc, uts")
        return
    yield Finding(
        "namespaces",
        State.PROBLEM,
        refused,
        "allow unprivileged user namespaces (sysctl kernel.unprivileged_userns_clone=1, "
        "kernel.apparmor_restrict_unprivileged_userns=0, user.max_user_namespaces above 0); "
        "without them kernels are compiled, but no agent runs and nothing is judged",
    )


def _resources() -> Iterator[Finding]:
    cores = len(os.sched_getaffinity(0))
    memory = psutil.virtual_memory()
    enough = memory.available >= 4 << 30
    yield Finding(
        "machine",
        State.OK if enough else State.PROBLEM,
        f"{cores} cores, {memory.total >> 30} GiB of memory, {memory.available >> 30} GiB of it "
        f"available, {machine.machine()}",
        "" if enough else "judging needs about 4 GiB of available memory",
    )
    store = default_path()
    existing = next(path for path in (store, *store.parents) if path.exists())
    free = psutil.disk_usage(str(existing)).free
    writable = os.access(existing, os.W_OK)
    advice = "" if writable else "choose another place: export KABUILD_CACHE=/some/where"
    state = State.OK if writable and free > 1 << 30 else State.PROBLEM
    yield Finding("store", state, f"{store} ({free >> 30} GiB free)", advice)


def _seal_key() -> Iterator[Finding]:
    """Without it builds work, and keep nothing."""
    if problem := key_problem():
        found = f"no result is kept for later builds: {problem}"
        yield Finding("seal key", State.WARNING, found)
        return
    yield Finding("seal key", State.OK, "yours alone, or made by the next build")


def _platforms() -> Iterator[Finding]:
    yield Finding("platform cpu", State.OK, "HIP on fibers, Triton interpreted")
    platforms = PlatformIndex.around(Path.cwd())
    yield from find_devices(platforms, default_path() / LEASES)
    for name in platforms.names():
        with suppress(LoadError):  # which the platform reports itself
            spec = platforms.spec(name)
            yield from (_distribution(p.name, p.use, State.OPTIONAL) for p in spec.packages)
            yield from map(_installation, spec.installations)
    for tool, use in (
        ("g++", "to adopt for the cpu platform"),
        ("ssh-keygen", "signatures of bundles"),
    ):
        path = shutil.which(tool)
        state = State.OK if path else State.OPTIONAL
        yield Finding(f"installed {tool}", state, f"{path or 'none'} ({use})")


def _installation(wanted: Installation) -> Finding:
    found = shutil.which(wanted.program)
    home = installation(Path(found), wanted.requires) if found else None
    state = State.OK if home else State.OPTIONAL
    return Finding(f"installed {wanted.program}", state, f"{home or 'none'} ({wanted.use})")


CHECKS: tuple[Callable[[], Iterator[Finding]], ...] = (
    *(_python, _bytecode, _kernel, _sandbox, _resources, _seal_key, _platforms),
    find_toolchains,
)


@dataclass(frozen=True, kw_only=True)
class DoctorFlags(ServerFlags, JsonFlags):
    """The options of ``kabuild doctor``."""

    unbound: ClassVar = TargetFlags.unbound  # --config


@click.command("doctor", context_settings={"show_default": False})
@takes(DoctorFlags)
def command(options: DoctorFlags) -> None:
    """Check this machine, and say how to install missing parts.

    \b
    kabuild doctor
    kabuild doctor --json | jq '.[] | select(.state == "PROBLEM")'
    kabuild doctor --remote_cache=grpc://cache.example:8980

    --remote_cache=URL also checks that server, by writing a test entry; --remote_executor=URL
    checks that fleet, by asking a worker of each pool. Exits with 36 when a required part is
    missing.
    """
    findings = [finding for check in CHECKS for finding in check()]
    if remote := options.server():
        from kabuild.cli.doctor_fleet import find_servers

        findings += find_servers(remote)
    tell_findings(findings, as_json=options.as_json)
