"""Reports a missing dependency of kabuild. Imports only the standard library."""

from __future__ import annotations

_DISTRIBUTIONS = {"hip": "hip-python", "yaml": "pyyaml"}
"""Distributions whose name differs from that of their import package."""


def text_of(error: ImportError) -> str:
    """What is missing and how to install it; empty if it is not a dependency of kabuild."""
    import re

    module = (error.name or "").partition(".")[0]
    wanted = re.sub("[-_.]+", "-", _DISTRIBUTIONS.get(module, module)).lower()
    for requirement in _requirements():
        name = re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0]
        if wanted and re.sub("[-_.]+", "-", name).lower() == wanted:
            said = "is not installed" if isinstance(error, ModuleNotFoundError) else "is broken"
            why = "" if isinstance(error, ModuleNotFoundError) else f": {error.msg}"
            return (
                f"the Python package '{name}', which kabuild needs, {said}{why}\n"
                f"  get it with: {_python()} -m pip install '{requirement}'"
            )
    return ""


def _requirements() -> list[str]:
    from importlib.metadata import PackageNotFoundError, requires

    try:
        found = requires("kabuild") or []
    except PackageNotFoundError:
        found = ["click", "jinja2", "psutil", "pyyaml", "rich", "structlog", "toml", "watchfiles"]
        found += ["zstandard"]
    return [text.partition(";")[0].strip() for text in found if "extra ==" not in text]


def _python() -> str:
    import sys

    return sys.executable or "python"
