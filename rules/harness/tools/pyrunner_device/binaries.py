"""Puts the kernels that a compile gate has compiled into Triton's cache."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import re
from pathlib import Path

from terms.launcher_types import MOST_LAUNCHERS, are_plain

_PLACE = re.compile(r"\w{1,80}/\w[\w.]{0,199}", re.ASCII)
"""A file in a folder of Triton's cache."""

_GROUP = "__grp__"
"""The prefix of the file that lists a kernel's files, with their absolute paths."""


_MALFORMED = (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError)


def lay_out(path: str) -> None:
    """Fill Triton's cache with the kernels in the file ``path``, as far as they can be read.

    Triton compiles any other kernel at its first call. A program gets only its own kernels, and
    could write the same files itself. The launch filter checks everything that the driver loads.
    """
    cache = Path(os.environ["TRITON_CACHE_DIR"])
    with contextlib.suppress(*_MALFORMED):
        files = json.loads(Path(path).read_bytes())["files"].items()
        # Write a list after its files: other runners of the baseline may share the folder.
        for name, data in sorted(files, key=lambda file: _GROUP in file[0]):
            if _PLACE.fullmatch(name):
                _put(cache / name, base64.b64decode(data, validate=True))


def launchers(path: str) -> list[list[str]]:
    """The parameter types of the kernels in the file ``path``, as far as they can be read."""
    with contextlib.suppress(*_MALFORMED):
        written = json.loads(Path(path).read_bytes())["launchers"]
        return [each.split(",") for each in written if are_plain(each)][:MOST_LAUNCHERS]
    return []


def _put(place: Path, content: bytes) -> None:
    if place.exists():
        return
    if place.name.startswith(_GROUP):
        content = _beside(content, place)
    place.parent.mkdir(parents=True, exist_ok=True)
    unfinished = place.with_name(f"{place.name}.{os.getpid()}")
    unfinished.write_bytes(content)
    unfinished.replace(place)


def _beside(group: bytes, place: Path) -> bytes:
    """A list of a kernel's files, with the paths changed to the folder of ``place``."""
    names = dict(json.loads(group))["child_paths"]
    return json.dumps({"child_paths": {name: str(place.parent / name) for name in names}}).encode()
