"""Toolchains in the running Python: environments and single distributions."""

from __future__ import annotations

import os
import sys

from kabuild.base.errors import DriftError, Reason, ToolchainError
from kabuild.toolchain.aliases import with_aliases
from kabuild.toolchain.declaration import Declaration, Distribution, Environment
from kabuild.toolchain.distributions import (
    InstalledDistribution,
    closure,
    import_path,
    installed,
    normalise,
)
from kabuild.toolchain.fingerprint import (
    FileDigest,
    distribution_fingerprint,
    environment_fingerprint,
)

Found = tuple[bytes, str, tuple[str, ...]]
"""Fingerprint, home and mounts of a toolchain."""


def find_environment(
    declaration: Declaration, pin: Environment, record_digest: FileDigest
) -> Found:
    """The running interpreter; its home is the root of the (virtual) environment.

    Raises ToolchainError(NO_TOOLCHAIN).
    """
    known = installed(import_path())
    missing = [name for name in pin.distributions if normalise(name) not in known]
    if missing:
        raise _missing(declaration, missing[0], missing)
    distributions = closure(pin.distributions, known)
    for distribution in distributions:
        _check_record(declaration, distribution)
    directories = dict.fromkeys((*with_aliases(sys.prefix), *with_aliases(sys.base_prefix)))
    for distribution in distributions:
        for site in with_aliases(str(distribution.site)):
            if not any(_is_below(site, directory) for directory in directories):
                directories[site] = None
    fingerprint = environment_fingerprint(distributions, record_digest)
    return fingerprint, sys.prefix, tuple(directories)


def find_distribution(
    declaration: Declaration, pin: Distribution, record_digest: FileDigest
) -> Found:
    """One distribution; its home is the real path of its import package.

    Raises ToolchainError(NO_TOOLCHAIN), DriftError for another version.
    """
    found = installed(import_path()).get(normalise(pin.name))
    requirement = f"{pin.name}=={pin.version}"
    if found is None:
        raise _missing(declaration, pin.name, [requirement])
    if found.version != pin.version:
        raise DriftError(
            Reason.TOOLCHAIN_DRIFT,
            f"{declaration.label.short} is pinned to {pin.name} {pin.version}; "
            f"{found.version} is installed",
            position=declaration.position,
            hint=f"{sys.executable} -m pip install '{requirement}'",
        )
    _check_record(declaration, found)
    home = found.site.resolve() / found.info.name.partition("-")[0]
    if not home.is_dir():
        raise ToolchainError(
            Reason.NO_TOOLCHAIN,
            f"{pin.name} {pin.version} has no package directory: {home} does not exist",
            position=declaration.position,
            hint=f"{sys.executable} -m pip install --force-reinstall '{requirement}'",
        )
    return distribution_fingerprint(found, record_digest), str(home), (str(home),)


def versions(pin: Environment | Distribution) -> tuple[str, ...]:
    """``name==version`` of a pin's installed distributions.

    Without local versions: ``2.13.0+cpu`` and ``2.13.0+cu130`` are builds of one version.
    """
    known = installed(import_path())
    names = pin.distributions if isinstance(pin, Environment) else (pin.name,)
    found = (known.get(normalise(name)) for name in names)
    return tuple(sorted(f"{item.name}=={item.version.partition('+')[0]}" for item in found if item))


def _missing(declaration: Declaration, name: str, requirements: list[str]) -> ToolchainError:
    return ToolchainError(
        Reason.NO_TOOLCHAIN,
        f"{declaration.label.short} needs {name}, which is not installed in {sys.prefix}",
        position=declaration.position,
        hint=f"{sys.executable} -m pip install {' '.join(map(repr, requirements))}",
    )


def _check_record(declaration: Declaration, distribution: InstalledDistribution) -> None:
    """Raise ToolchainError for a distribution whose files no RECORD lists."""
    how, hint = "without a RECORD", f"pip install --force-reinstall {distribution.name}"
    if distribution.is_editable:
        how, hint = "as editable", "pip install WHEEL, a wheel that you build of it"
    elif distribution.record.is_file():
        return
    raise ToolchainError(
        Reason.NO_TOOLCHAIN,
        f"{declaration.label.short}: {distribution.name} {distribution.version} was "
        f"installed {how}, so its content is unknown",
        position=declaration.position,
        hint=f"{sys.executable} -m {hint}",
    )


def _is_below(path: str, directory: str) -> bool:
    return path == directory or path.startswith(f"{directory.rstrip(os.sep)}{os.sep}")
