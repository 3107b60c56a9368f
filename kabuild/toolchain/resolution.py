"""From what is declared to what is on this machine."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from kabuild.base.errors import Reason, ToolchainError
from kabuild.model.toolchain import Toolchain
from kabuild.toolchain.declaration import Declaration, Distribution, Environment, LocalTree
from kabuild.toolchain.distributions import (
    InstalledDistribution,
    closure,
    installed,
    normalise,
)
from kabuild.toolchain.fingerprint import (
    FileDigest,
    distribution_fingerprint,
    environment_fingerprint,
    hash_file,
    hash_record,
    tree_fingerprint,
)


def resolve(
    declaration: Declaration,
    *,
    name: str = "",
    file_digest: FileDigest = hash_file,
    record_digest: FileDigest = hash_record,
) -> Toolchain:
    """Find a declared toolchain on this machine and fingerprint it.

    ``name`` is what ``${toolchain:NAME}`` will say, the target's name by default.
    ``file_digest`` and ``record_digest`` read files in full; a caller may wrap them to
    remember digests by signature (size, times, inode), so that a second run reads nothing.

    Raises ToolchainError: NO_TOOLCHAIN for what is missing, TOOLCHAIN_DRIFT for what is not
    what was pinned.
    """
    pin = declaration.pin
    if isinstance(pin, Environment):
        fingerprint, home, mounts = _environment(declaration, pin, record_digest)
    elif isinstance(pin, Distribution):
        fingerprint, home, mounts = _distribution(declaration, pin, record_digest)
    else:
        fingerprint, home, mounts = _local(declaration, pin, file_digest)
    return Toolchain(
        name=name or declaration.label.name,
        role=declaration.role,
        fingerprint=fingerprint,
        home=home,
        mounts=mounts,
    )


Found = tuple[bytes, str, tuple[str, ...]]


def _environment(declaration: Declaration, pin: Environment, record_digest: FileDigest) -> Found:
    """The running interpreter; home is the root of its (virtual) environment."""
    known = installed(sys.path)
    missing = [name for name in pin.distributions if normalise(name) not in known]
    if missing:
        raise _missing(declaration, missing[0], missing)
    distributions = closure(pin.distributions, known)
    for distribution in distributions:
        _check_record(declaration, distribution)
    directories = dict.fromkeys((sys.prefix, sys.base_prefix))
    for distribution in distributions:
        site = str(distribution.site)
        if not any(_is_below(site, directory) for directory in directories):
            directories[site] = None
    fingerprint = environment_fingerprint(distributions, record_digest)
    return fingerprint, sys.prefix, tuple(directories)


def _distribution(declaration: Declaration, pin: Distribution, record_digest: FileDigest) -> Found:
    """One distribution; home is the directory of its import package."""
    found = installed(sys.path).get(normalise(pin.name))
    requirement = f"{pin.name}=={pin.version}"
    if found is None:
        raise _missing(declaration, pin.name, [requirement])
    if found.version != pin.version:
        raise ToolchainError(
            Reason.TOOLCHAIN_DRIFT,
            f"{declaration.label.short} is pinned to {pin.name} {pin.version}; "
            f"{found.version} is installed",
            position=declaration.position,
            hint=f"{sys.executable} -m pip install '{requirement}'",
        )
    _check_record(declaration, found)
    home = found.site / found.info.name.partition("-")[0]
    if not home.is_dir():
        raise ToolchainError(
            Reason.NO_TOOLCHAIN,
            f"{pin.name} {pin.version} has no package directory: {home} does not exist",
            position=declaration.position,
            hint=f"{sys.executable} -m pip install --force-reinstall '{requirement}'",
        )
    return distribution_fingerprint(found, record_digest), str(home), (str(home),)


def _local(declaration: Declaration, pin: LocalTree, file_digest: FileDigest) -> Found:
    """An adopted directory; home is that directory."""
    home = Path(pin.home)
    for path in ("", *pin.paths):
        if not os.path.lexists(home / path):
            raise ToolchainError(
                Reason.NO_TOOLCHAIN,
                f"{declaration.label.short} is not on this machine: {home / path} does not exist",
                position=declaration.position,
            )
    try:
        fingerprint = tree_fingerprint(home, pin.paths, file_digest)
    except OSError as error:
        raise ToolchainError(
            Reason.NO_TOOLCHAIN,
            f"{declaration.label.short} cannot be read: {error.filename}: {error.strerror}",
            position=declaration.position,
        ) from error
    return fingerprint, str(home), (str(home),)


def _missing(declaration: Declaration, name: str, requirements: list[str]) -> ToolchainError:
    return ToolchainError(
        Reason.NO_TOOLCHAIN,
        f"{declaration.label.short} needs {name}, which is not installed in {sys.prefix}",
        position=declaration.position,
        hint=f"{sys.executable} -m pip install {' '.join(map(repr, requirements))}",
    )


def _check_record(declaration: Declaration, distribution: InstalledDistribution) -> None:
    if not distribution.record.is_file():
        raise ToolchainError(
            Reason.NO_TOOLCHAIN,
            f"{declaration.label.short}: {distribution.name} {distribution.version} was "
            "installed without a RECORD, so its content is unknown",
            position=declaration.position,
            hint=f"{sys.executable} -m pip install --force-reinstall {distribution.name}",
        )


def _is_below(path: str, directory: str) -> bool:
    return path == directory or path.startswith(f"{directory.rstrip(os.sep)}{os.sep}")
