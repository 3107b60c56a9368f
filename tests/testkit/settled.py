"""Costly parts of the tests that are settled: they passed with the very files they are about.

``tests/golden/settled/PART`` has the digest of a part's files as all its tests passed. While the
files are the same, ``make test`` runs a fifth of all such modules, chosen by the commit, since
they depend on the rest of the project and on the machine too. After a change, in ``make test-all``,
and where pytest is called by hand, all run; with ``KABUILD_TEST_ACCEPT=1`` a run that passed is
recorded.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.tasks.chosen import turn
from tests.tasks.declared import starters
from tests.testkit.kept import REPOSITORY

SHARE = 5
RECORDS = REPOSITORY / "tests/golden/settled"
_NOT_READ = frozenset({"__pycache__", ".hypothesis", ".mypy_cache", ".pytest_cache", ".ruff_cache"})


@dataclass(frozen=True)
class Part:
    """Modules of tests, and the other files that they are about; all are globs or directories.

    Pages matter if they are named. A module that several parts name belongs to the first of them.

    Attributes:
        but: modules that belong to no part, and always run.
    """

    modules: tuple[str, ...]
    about: tuple[str, ...]
    but: tuple[str, ...] = ()


_STARTERS = tuple(str(task.package.relative_to(REPOSITORY)) for task in starters())
_PRODUCT = (
    "kabuild",
    "rules",
    "toolchains",
    "tasks/models",
    "WORKSPACE.toml",
    "pyproject.toml",
    "tests/conftest.py",
    "tests/golden/keys",
    "tests/testkit",
    *_STARTERS,
)

PARTS: Mapping[str, Part] = {
    "agents": Part(
        (
            "tests/cli/test_agent*.py",
            "tests/cli/test_evolve.py",
            "tests/cli/test_ranking.py",
            "tests/cli/test_tuner.py",
        ),
        (
            "kabuild/execution",
            "kabuild/sandbox",
            "rules/agent",
            "rules/agent/README.md",
            "rules/agent/sheets/*.md",
            "rules/harness",
            "tests/cli/agents",
            "tests/testkit/two_gpus.py",
            "toolchains/agents",
            "toolchains/python",
        ),
    ),
    "compilers": Part(
        (
            "tests/toolchains/hip/test_*.py",
            "tests/toolchains/hip_cuda/test_*.py",
            "tests/toolchains/hip_rocm/test_*.py",
        ),
        (
            "toolchains/cuda",
            "toolchains/hip",
            "toolchains/platforms",
            "toolchains/python",
            "toolchains/rocm",
            "toolchains/zig",
            "toolchains/lock.toml",
            "kabuild/platform",
            "rules/harness/tools/terms",
            "tests/toolchains",
            "tests/testkit/compilations.py",
            "tests/testkit/hip_drivers.py",
            "tests/testkit/runtime.py",
        ),
    ),
    "fleets": Part(
        (
            "tests/cli/test_fleet.py",
            "tests/cli/test_shared_cache*.py",
            "tests/cli/test_worker_config.py",
            "tests/conformance/test_s*.py",
            "tests/kabuild/remote/test_*.py",
            "tests/kabuild/worker/test_*.py",
        ),
        (
            "kabuild/delegation.py",
            "kabuild/execution",
            "kabuild/model",
            "kabuild/remote",
            "kabuild/sandbox",
            "kabuild/sharing.py",
            "kabuild/store",
            "kabuild/worker",
            "tests/testkit",
        ),
    ),
    "kernels": Part(
        ("tests/tasks/test_hip_tasks.py",),
        (
            *(package for package in _STARTERS if "triton" not in package),
            "toolchains/hip",
            "toolchains/python",
            "tests/tasks/hip_kernels.py",
        ),
    ),
    "launches": Part(
        (
            "tests/rules/triton2triton/test_*.py",
            "tests/rules/harness/test_launch_filter.py",
            "tests/rules/harness/test_launch_filter_rocm.py",
        ),
        (
            "kabuild/sandbox",
            "rules/harness/tools/base",
            "rules/harness/tools/launch_filter*",
            "rules/harness/tools/pyrunner_device",
            "rules/harness/tools/terms",
            "rules/triton2triton",
            "tests/rules/triton2triton",
            "tests/testkit/forks.py",
            "tests/testkit/launch_driver",
            "toolchains/hip",
            "toolchains/platforms",
            "toolchains/python",
        ),
    ),
    "imports": Part(
        ("tests/cli/test_import*.py",),
        (
            "rules/imports",
            "rules/call",
            "kabuild/loading",
            "kabuild/cli/import_.py",
            "kabuild/cli/prove.py",
            "kabuild/cli/audit.py",
            "rules/harness",
            "toolchains/python",
            "tests/cli/aka_tasks.py",
        ),
    ),
    "models": Part(
        ("tests/cli/test_model*.py", "tests/rules/model/test_*.py"),
        (
            "rules/model",
            "rules/call",
            "rules/harness",
            "kabuild/neural",
            "kabuild/cli/model*.py",
            "toolchains/python",
        ),
    ),
    "published": Part(
        (
            "tests/kabuild/bundle/test_*.py",
            "tests/kabuild/published/test_*.py",
            "tests/kabuild/report/test_*.py",
        ),
        (
            "kabuild/bundle",
            "kabuild/execution",
            "kabuild/model",
            "kabuild/published",
            "kabuild/report",
            "kabuild/sandbox",
            "results",
            "tests/testkit",
        ),
    ),
    "sanitizer": Part(
        ("tests/cli/test_sanitize.py",),
        (
            "rules/harness",
            "toolchains/hip",
            "toolchains/python",
        ),
    ),
    "commands": Part(
        ("tests/cli/test_*.py",),
        (*_PRODUCT, "docs/results.md", "tests/cli"),
        but=("tests/cli/test_docs.py",),
    ),
    "engine": Part(
        ("tests/kabuild/**/test_*.py",),
        (*_PRODUCT, "results", "tests/kabuild"),
        but=("tests/kabuild/toolchain/test_readme.py",),
    ),
    "judge": Part(
        ("tests/rules/**/test_*.py",),
        (*_PRODUCT, "results/rocm/README.md", "tests/rules", "tests/device"),
    ),
}


def modules_of(name: str, root: Path = REPOSITORY) -> list[str]:
    """The modules of a part, as paths below ``root``."""
    return sorted(_modules(PARTS, root)[name])


def _modules(parts: Mapping[str, Part], root: Path) -> dict[str, set[str]]:
    taken: set[str] = set()
    found: dict[str, set[str]] = {}
    for name, part in parts.items():
        named = {str(path.relative_to(root)) for glob in part.modules for path in root.glob(glob)}
        found[name] = named - taken - set(part.but)
        taken |= named
    return found


def digest(part: Part, root: Path = REPOSITORY) -> str:
    """A digest of the names and contents of all files that settle the part, but for pages."""
    code = hashlib.sha256()
    globs = (*part.modules, *part.about)
    for path in sorted({path for glob in globs for path in _files(root, glob)}):
        content = path.read_bytes()
        code.update(f"{path.relative_to(root)}\0{len(content)}\0".encode() + content)
    return code.hexdigest()


def is_settled(name: str, records: Path = RECORDS) -> bool:
    """Whether the files of the part are those with which it passed."""
    try:
        return (records / name).read_text().strip() == digest(PARTS[name])
    except OSError:
        return False


def record(name: str, records: Path = RECORDS) -> None:
    """Write down that the part passed."""
    records.mkdir(parents=True, exist_ok=True)
    (records / name).write_text(f"{digest(PARTS[name])}\n")


def left_out(settled: Iterable[str], of_turn: str) -> set[str]:
    """The modules of settled parts that are not in turn; ``of_turn`` names the turn.

    One in ``SHARE`` is in turn, of files of about equal size: the larger ones cost more.
    """
    modules = {module for name in settled for module in modules_of(name)}
    by_size = sorted(modules, key=lambda module: ((REPOSITORY / module).stat().st_size, module))
    first = int(hashlib.sha256(of_turn.encode()).hexdigest(), 16) % SHARE
    return modules - set(by_size[first::SHARE])


def not_in_turn() -> set[str]:
    """The modules that this run leaves out: none unless ``make test`` calls."""
    if os.environ.get("KABUILD_TEST_SUITE") != "turns" or accepts():
        return set()
    return left_out(filter(is_settled, PARTS), turn())


def accepts() -> bool:
    """Whether this run records what passed."""
    return os.environ.get("KABUILD_TEST_ACCEPT") == "1"


def record_passed(ran: Collection[str], records: Path = RECORDS) -> None:
    """Record the parts whose modules are all among ``ran``, which passed as a whole."""
    for name in PARTS:
        if set(modules_of(name)).issubset(ran):
            record(name, records)


def _files(root: Path, glob: str) -> Iterable[Path]:
    for path in root.glob(glob):
        found = [f for f in path.rglob("*") if f.suffix != ".md"] if path.is_dir() else [path]
        for file in found:
            if file.is_file() and _NOT_READ.isdisjoint(file.parts):
                yield file


if __name__ == "__main__":  # of each part that is not settled a line: its name, and its modules
    lines = (f"{name} {' '.join(modules_of(name))}" for name in PARTS if not is_settled(name))
    sys.stdout.write("".join(f"{line}\n" for line in lines))
