"""A package that is not installed: one line says which, and how to get it, at once."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.testkit.cli import CliWorkspace
from tests.testkit.generated import generate

HIDE = """\
import sys

HIDDEN = {hidden!r}


class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == HIDDEN:
            raise ModuleNotFoundError("No module named " + repr(name), name=name)


sys.meta_path.insert(0, Hidden())
"""


BROKEN = [
    ("structlog", "(", "SyntaxError: '(' was never closed (__init__.py, line 1)"),
    ("structlog", "raise ImportError", "no reason given"),
    ("structlog", "raise ImportError('no name')", "no name"),
    ("structlog", "import structlog.gone", "No module named 'structlog.gone'"),
    ("structlog", "from structlog import gone", "cannot import name 'gone' from partially"),
    ("structlog", "import of_nobody", "No module named 'of_nobody'"),
    ("structlog", "None.x", "AttributeError: 'NoneType' object has no attribute 'x'"),
    ("structlog", "def f(): 1 / 0\nf()", "ZeroDivisionError: division by zero"),
    ("structlog", "\0", "source code string cannot contain null bytes"),
    ("click", "(", "SyntaxError: '(' was never closed (__init__.py, line 1)"),
    ("click", "raise ImportError", "no reason given"),
]


def without(tmp_path: Path, package: str) -> CliWorkspace:
    """A workspace whose interpreter cannot import a package."""
    generate(tmp_path / "work", 1, shared=1, age=0)
    (tmp_path / "hide").mkdir()
    (tmp_path / "hide/sitecustomize.py").write_text(HIDE.format(hidden=package))
    path = str(tmp_path / "hide")
    return CliWorkspace(tmp_path / "work", tmp_path / "store", {"PYTHONPATH": path})


@pytest.mark.parametrize(
    ("package", "requirement", "words"),
    [
        ("click", "click>=", ("version",)),
        ("structlog", "structlog>=", ("test", "//...")),
        ("jinja2", "jinja2>=", ("report", "//...")),
        ("yaml", "pyyaml>=", ("report", "//...", "--format=arena", "-o", "run")),
        ("psutil", "psutil>=", ("doctor",)),
        ("zstandard", "zstandard>=", ("cache", "export", "all")),
        ("watchfiles", "watchfiles>=", ("watch", "//...")),
    ],
)
def test_it_is_named_with_the_command_that_installs_it(
    tmp_path: Path, package: str, requirement: str, words: tuple[str, ...]
) -> None:
    began = time.monotonic()
    ran = without(tmp_path, package).run(*words, timeout=120)

    assert ran.code == 36
    told = [line for line in ran.err.splitlines() if not line.startswith("[")]
    name = requirement.removesuffix(">=")
    assert told[0] == f"error: the Python package '{name}', which kabuild needs, is not installed"
    assert f" -m pip install '{requirement}" in told[1]
    assert len(told) == 2
    assert time.monotonic() - began < 100


@pytest.mark.parametrize(("package", "source", "why"), BROKEN)
def test_a_package_whose_import_fails_is_named_with_what_failed(
    tmp_path: Path, package: str, source: str, why: str
) -> None:
    generate(tmp_path / "work", 1, shared=1, age=0)
    broken = tmp_path / "broken" / package / "__init__.py"
    broken.parent.mkdir(parents=True)
    broken.write_text(f"{source}\n")
    env = {"PYTHONPATH": str(tmp_path / "broken")}
    words = ("version",) if package == "click" else ("test", "//...")

    ran = CliWorkspace(tmp_path / "work", tmp_path / "store", env).run(*words, timeout=300)

    assert ran.code == 36, ran.err
    told = [line for line in ran.err.splitlines() if not line.startswith("[")]
    what = f"error: the Python package '{package}', which kabuild needs, is broken: "
    assert told[0].startswith(what)
    assert why in told[0]
    assert f" -m pip install --force-reinstall '{package}>=" in told[1]
    assert len(told) == 2
