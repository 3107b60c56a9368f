"""Reports a missing or broken dependency of kabuild. Imports only the standard library."""

from __future__ import annotations

TYPE_CHECKING = False  # as in kabuild/__init__.py
if TYPE_CHECKING:
    from collections.abc import Iterator

_DISTRIBUTIONS = {"hip": "hip-python", "yaml": "pyyaml"}
"""Distributions whose name differs from that of their import package."""

_MOST_WORDS = 200


def text_of(error: BaseException) -> str:
    """What is missing or broken, and how to install it; empty if no package is.

    A package is broken if its import fails, with whatever exception.
    """
    if isinstance(error, ImportError) and (module := error.name or ""):
        package = module.partition(".")[0]
        requirement = _requirement(package)
        is_missing = isinstance(error, ModuleNotFoundError) and module == package
        if requirement and is_missing:
            name = _name(requirement)
            return (
                f"the Python package '{name}', which kabuild needs, is not installed\n"
                f"  get it with: {_python()} -m pip install '{requirement}'"
            )
        if requirement:
            return _broken(package, requirement, error)
    package = _importing(error)
    return _broken(package, _requirement(package) or package, error) if package else ""


def _broken(package: str, requirement: str, error: BaseException) -> str:
    why = " ".join(str(error).split())[:_MOST_WORDS]
    if not isinstance(error, ImportError):
        why = f"{type(error).__name__}: {why}" if why else type(error).__name__
    if _is_of_python(package):
        hint = f"reinstall {_python()}, or use another Python"
        return f"the module '{package}' of Python itself is broken: {why}\n  {hint}"
    again = f"{_python()} -m pip install --force-reinstall '{requirement}'"
    name = _name(requirement)
    return (
        f"the Python package '{name}', which kabuild needs, is broken: {why or 'no reason given'}\n"
        f"  reinstall it with: {again}"
    )


def _importing(error: BaseException) -> str:
    """The package whose import raised ``error``; empty if none did, or kabuild's own."""
    if isinstance(error, SyntaxError) and error.filename:
        return _package(error.filename)
    frames = [frame for frame in _frames(error) if frame[0].startswith("/")]  # not "<string>"
    if frames and _is_own(frames[-1][0]) and (package := _imported_by(*frames[-1][:2])):
        return package
    modules = [file for file, _, name in frames if name == "<module>"]
    return _package(modules[-1]) if modules else ""


def _frames(error: BaseException) -> Iterator[tuple[str, int, str]]:
    """(file, line, function) of each call, the innermost last."""
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        yield code.co_filename, trace.tb_lineno, code.co_name
        trace = trace.tb_next


def _imported_by(file: str, line: int) -> str:
    """The package that a line imports, if the module itself has no frame in a traceback."""
    import linecache
    import re

    match = re.match(r"\s*(?:import|from)\s+(\w+)", linecache.getline(file, line))
    return match[1] if match and match[1] != "kabuild" else ""


def _package(file: str) -> str:
    """The top-level name that a file is imported under; empty for kabuild and for no module."""
    import os
    import sys

    if _is_own(file):
        return ""
    real = os.path.realpath(file)
    homes = [os.path.realpath(path or ".") for path in sys.path]
    found = [home for home in homes if real.startswith(home.rstrip(os.sep) + os.sep)]
    if not found:
        return ""
    below = os.path.relpath(real, max(found, key=len))
    return below.partition(os.sep)[0].partition(".")[0]


def _is_own(file: str) -> bool:
    import os

    own = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))  # noqa: PTH120
    return os.path.realpath(file).startswith(own + os.sep)


def _is_of_python(package: str) -> bool:
    import sys

    return package in sys.stdlib_module_names


def _requirement(package: str) -> str:
    """What kabuild requires of an import package; empty for anything else."""
    wanted = _normal(_DISTRIBUTIONS.get(package, package))
    return next((text for text in _requirements() if wanted and _normal(_name(text)) == wanted), "")


def _name(requirement: str) -> str:
    import re

    return re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0]


def _normal(name: str) -> str:
    import re

    return re.sub("[-_.]+", "-", name).lower()


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
