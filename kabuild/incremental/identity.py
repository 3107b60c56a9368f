"""The identity of a request: everything besides files that can change its result."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import fields
from hashlib import sha256
from pathlib import Path

from kabuild.base.canonical import canonical_json
from kabuild.base.version import __version__
from kabuild.loading.platform_index import PlatformIndex
from kabuild.loading.request import Request
from kabuild.survey import survey

_WATCHED_ENVIRONMENT = ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH")
_WATCHED_ENDING = "_VISIBLE_DEVICES"
"""Suffix of the variables by which users hide devices; other variables change the platform."""

_EVERY_RUN_ALIKE = {"jobs", "keep_going", "keep_sandboxes", "remote"}
"""Flags that change how a build runs, but not its result."""


def can_be_remembered(request: Request) -> bool:
    """Whether an earlier answer may be used for this request."""
    alone = request.runs_per_gate == request.trials == 1
    cached = request.read_cached_gates and not request.fresh
    return request.judge and cached and alone


def identity(request: Request, root: Path) -> str:
    """A name for the request in the workspace at ``root``, with kabuild, Python and environment."""
    asked = {
        field.name: _plain(getattr(request, field.name))
        for field in fields(request)
        if field.name not in _EVERY_RUN_ALIKE
    }
    environment = {
        name: value
        for name, value in os.environ.items()
        if name in _WATCHED_ENVIRONMENT
        or name.startswith("KABUILD_")
        or name.endswith(_WATCHED_ENDING)
    }
    parts = {
        "asked": asked,
        "root": str(root),
        "kabuild": __version__,
        "python": [sys.version, sys.executable, sys.prefix, sys.base_prefix, *sys.path],
        "environment": environment,
    }
    return sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def platform_text(root: Path, asked: str, devices: Sequence[int]) -> str:
    """This machine's platform, in the workspace at ``root``, as text.

    Raises as ``survey``.
    """
    platforms = PlatformIndex.of(root)
    platform, _ = survey(platforms, platforms.parse(asked), devices)
    return canonical_json([platform.name, *platform.properties]).decode()


def _plain(value: object) -> object:
    return str(value) if isinstance(value, Path) else value
