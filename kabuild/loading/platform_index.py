"""Platforms by name: the declarations and drivers in ``toolchains/platforms/NAME``.

A workspace's own directories come before those that ship with kabuild. A directory is read when its
platform is requested; its driver is imported when its devices are. ``cpu`` reads nothing.
"""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kabuild.base.bytecode import own_package
from kabuild.base.errors import LoadError, Reason, UsageError, described
from kabuild.base.suggest import suggest
from kabuild.loading.roots import PEAKS_FILE, PLATFORM_FILE, builtin_root, find_workspace
from kabuild.model.platform import CPU, CPU_SPEC, PLATFORMS, Platform, PlatformSpec

if TYPE_CHECKING:
    from kabuild.platform import Driver

DRIVER_FILE = "devices.py"
_LONGEST_NAME = 100
"""Bytes of a platform's name; a directory cannot have a much longer one."""
_serial = itertools.count(1)


class PlatformIndex:
    """The platforms of one workspace; ``roots`` are their directories, in order of precedence."""

    @classmethod
    def of(cls, workspace: Path | None) -> PlatformIndex:
        """The platforms of a workspace; without one, those that ship with kabuild."""
        roots = (root / PLATFORMS for root in (workspace, builtin_root()) if root)
        return cls(tuple(dict.fromkeys(roots)))

    @classmethod
    def around(cls, directory: Path) -> PlatformIndex:
        """The platforms of the workspace at or above a directory; without one, kabuild's own."""
        try:
            return cls.of(find_workspace(directory))
        except UsageError:
            return cls.of(None)

    def __init__(self, roots: Sequence[Path]) -> None:
        self.roots = tuple(roots)
        self._specs: dict[str, PlatformSpec] = {CPU: CPU_SPEC}
        self._peaks: dict[str, Mapping[str, Any]] | None = None

    def names(self) -> tuple[str, ...]:
        """``cpu``, then all others, sorted; reads no file."""
        files = (file for root in self.roots for file in root.glob(f"*/{PLATFORM_FILE}"))
        return (CPU, *sorted({file.parent.name for file in files} - {CPU}))

    def knows(self, name: str) -> bool:
        """Whether there is a platform of that name; reads no file."""
        return name == CPU or self._directory(name) is not None

    def hint(self, name: str) -> str:
        """What to write instead of a name that is not known; reads no file."""
        # Short names are all similar: 'xpu' and 'gpu' are not misspellings of 'cpu'.
        near = suggest(name, (known for known in self.names() if known[:1] == name[:1]))
        return near or f"platforms: {', '.join(self.names())}"

    def spec(self, name: str) -> PlatformSpec:
        """The declaration of a platform.

        Raises UsageError(UNKNOWN_PLATFORM), and LoadError with the line of an error.
        """
        if name not in self._specs:
            directory = self._directory(name)
            if directory is None:
                raise UsageError(
                    Reason.UNKNOWN_PLATFORM,
                    f"unknown platform '{name}'",
                    hint=self._architecture(name) or self.hint(name),
                )
            from kabuild.loading.platform_file import read_platform

            builtin = directory.parent == builtin_root() / PLATFORMS
            self._specs[name] = read_platform(
                directory, self._shown(directory), root="builtin" if builtin else "workspace"
            )
        return self._specs[name]

    def peaks(self) -> Mapping[str, Mapping[str, Any]]:
        """By architecture, the published peaks of one GPU, of all platforms that declare some.

        Raises LoadError with the line of an error.
        """
        if self._peaks is None:
            from kabuild.loading.peaks_file import read_peaks

            self._peaks = {}
            for name in self.names():
                directory = self._directory(name)
                if directory and (directory / PEAKS_FILE).is_file():
                    known = set(self.spec(name).architectures.values())
                    self._peaks |= read_peaks(directory, self._shown(directory), known)
        return self._peaks

    def parse(self, text: str) -> Platform:
        """The platform of ``--platform=NAME[:ARCH]``. Raises as ``spec``."""
        name, colon, arch = text.partition(":")
        known = self.spec(name).architectures
        if (colon and not arch) or (arch and known and arch not in known):
            there = f"known: {', '.join(known)}" if known else f"--platform={name}"
            raise UsageError(
                Reason.UNKNOWN_PLATFORM,
                f"unknown {name} architecture '{arch}'",
                hint="\n".join(filter(None, (_near(arch, known), there))),
            )
        return Platform(name, (("arch", arch),) if arch else ())

    def driver(self, name: str) -> Driver | None:
        """The driver of a platform; None if it has none.

        Raises LoadError(BAD_PLATFORM) for an invalid file.
        """
        directory = self._directory(name)
        if directory is None or not (directory / DRIVER_FILE).is_file():
            return None
        return import_driver(directory)

    def failure(self, name: str, error: Exception) -> LoadError:
        """The error to raise if a platform's driver failed with ``error``."""
        return _driver_failure(self._directory(name) or self.roots[0] / name, error)

    def _directory(self, name: str) -> Path | None:
        if not name.isidentifier() or len(name.encode()) > _LONGEST_NAME:
            return None
        directories = (root / name for root in self.roots)
        return next((path for path in directories if (path / PLATFORM_FILE).is_file()), None)

    def _shown(self, directory: Path) -> str:
        """A directory's name in messages: the first root is the workspace's own."""
        own = directory.parent == self.roots[0]
        return f"{PLATFORMS}/{directory.name}" if own else str(directory)

    def _architecture(self, name: str) -> str:
        """A hint for a name that is an architecture; empty for others."""
        for platform in self.names():
            if name in self.spec(platform).architectures:
                return f"did you mean '{platform}:{name}'?"
        return ""


@cache
def import_driver(directory: Path) -> Driver:
    """The ``DRIVER`` of a platform's directory, once in a process.

    Its files are imported below a synthetic package, so that they can import each other relatively
    and those of two workspaces never mix. Raises LoadError(BAD_PLATFORM).
    """
    name = f"platform_{next(_serial)}"
    package = own_package(name, "The driver of one platform.", [str(directory)])
    importlib.invalidate_caches()
    try:
        module = importlib.import_module(f"{package.__name__}.{Path(DRIVER_FILE).stem}")
        driver: Driver = module.DRIVER
    except (KeyboardInterrupt, MemoryError):
        raise
    except BaseException as error:  # SystemExit, too: it would look like success
        raise _driver_failure(directory, error) from error
    return driver


def _driver_failure(directory: Path, error: BaseException) -> LoadError:
    from kabuild.loading.rule_failure import failure_position  # only for errors

    return LoadError(
        Reason.BAD_PLATFORM,
        f"the platform's driver fails: {described(error)}",
        position=failure_position(error, (directory,), directory / DRIVER_FILE),
    )


def _near(arch: str, known: Iterable[str]) -> str:
    """A hint for a mistyped architecture, if a similar one of the same generation exists."""
    return suggest(arch, (name for name in known if _generation(name) == _generation(arch)))


def _generation(arch: str) -> str:
    """The first digit of an architecture: ``9`` of ``x_90a``; empty without any."""
    return next(filter(str.isdecimal, arch), "")
