"""The platforms that HIP is compiled for, as a table: a platform is a directory beside this one.

``NAME/driver/NAME_platform.py`` describes it as ``PLATFORM``. Only platforms whose files are here
count: a build has the files of one.
"""

from __future__ import annotations

import importlib
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from compilers import compiler_choice

_HIP = Path(__file__).resolve().parents[1]


class Resources(Protocol):
    """The resources of a kernel that every GPU has."""

    @property
    def registers(self) -> int:
        """Of one thread."""

    @property
    def shared_bytes(self) -> int:
        """Of one block."""

    @property
    def spills(self) -> int:
        """Registers, or bytes, that do not fit: ``HipPlatform.spilled`` names the unit."""

    @property
    def occupancy(self) -> int:
        """Waves that a multiprocessor can hold at once."""

    @property
    def occupancy_most(self) -> int:
        """The most that it could hold of any kernel."""

    def to_json(self) -> dict[str, Any]:
        """As a part of ``verdict.json``."""


@dataclass(frozen=True)
class Request:
    """A kernel's library that is wanted.

    Attributes:
        include: directories besides the source's own where it may include files from.
        entries: ``extern "C"`` functions that it has to have.
        places: which file leads from code to lines, for a tool that watches the kernel run; None
            for a library that nothing watches.
        options: the platform's own, as parsed.
    """

    source: Path
    output: Path
    compiler: str
    include: Sequence[Path]
    entries: Sequence[str]
    places: Path | None
    options: Namespace


@dataclass(frozen=True)
class HipPlatform:
    """How HIP is compiled for one platform.

    Attributes:
        doc: what it is, for the help.
        compilers: what ``--compiler`` takes.
        add_kernel_options: adds the options that only its kernels have.
        build_kernel: makes a library; returns the resources of each kernel.
        spilled: in which unit kernels count what does not fit into registers; empty where
            nothing is known of what they take.
        watched: what watches its kernels with ``--sanitize``, for the help; empty for nothing.
        add_runtime_options: adds the options that only its runtime has.
        build_runtime: makes what its kernels need when they run; None where HIP's own does.
    """

    doc: str
    compilers: Sequence[str]
    add_kernel_options: Callable[[ArgumentParser], None]
    build_kernel: Callable[[Request], Sequence[Resources]]
    spilled: str = ""
    watched: str = ""
    add_runtime_options: Callable[[ArgumentParser], None] = lambda _: None
    build_runtime: Callable[[Namespace], None] | None = None

    def add_compiler(self, parser: ArgumentParser) -> None:
        """Add the option that every command has."""
        parser.add_argument(
            "--compiler",
            type=compiler_choice(*self.compilers),
            required=True,
            metavar="|".join(self.compilers),
        )

    def add_options(self, parser: ArgumentParser) -> None:
        """Add the options that the driver and the compile gate share."""
        self.add_compiler(parser)
        self.add_kernel_options(parser)
        parser.add_argument(
            "--entry", action="append", default=[], metavar="NAME", help="a required function"
        )
        if self.watched:
            parser.add_argument(
                "--sanitize",
                action="store_true",
                help=f"for {self.watched}; also makes OUT.places.json",
            )


def find_platforms() -> Mapping[str, HipPlatform]:
    """The platforms whose drivers are here, by name."""
    found: dict[str, HipPlatform] = {}
    for file in sorted(_HIP.glob("*/driver/*_platform.py")):
        sys.path.append(str(file.parent))
        found[file.parents[1].name] = importlib.import_module(file.stem).PLATFORM
    return found
