"""The layers of the architecture, enforced: who may import whom, and how long a file may be.

Checks read source text only. Each is shown to fail on a small tree that breaks its rule."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MAX_LINES = 400
MEASURED = (".py", ".cpp", ".h", ".hip", ".toml")
TREES = ("kabuild", "rules", "tasks", "toolchains", "tests")

LAYERS = {
    "base": (0, ""),
    "model": (1, ""),
    "platform": (2, ""),
    "toolchain": (2, "front"),
    "rule": (3, "front"),
    "loading": (4, "front"),
    "analysis": (5, "front"),
    "store": (6, "back"),
    "remote": (7, "back"),
    "sandbox": (8, "back"),
    "execution": (9, "back"),
    "scheduler": (10, "back"),
    "bundle": (11, "back"),
    "report": (12, ""),
    **dict.fromkeys(("given", "provision", "sharing", "delegation", "survey"), (13, "")),
    "pipeline": (14, ""),
    "incremental": (15, ""),
    "published": (15, ""),
    "worker": (15, ""),
    "builder": (16, ""),
    "imports": (17, ""),
    "neural": (17, ""),
    "api": (17, ""),
    "watched": (16, ""),
    "watch": (17, ""),
    "scaffold": (17, ""),
    "cli": (18, ""),
    "__main__": (19, ""),
}
"""Order and tower of each part of kabuild: it imports only what comes before it."""
TERMS = "rules/harness/tools/terms"
"""What rules and tools alike import."""

HOMES = {"grpc": "remote", "cryptography": "remote", "prometheus_client": "worker", "click": "cli"}
"""Libraries with one home in kabuild."""

SPAWNERS = {"subprocess", "multiprocessing", "pty", "concurrent.futures.process"}
SPAWNING = re.compile(r"os\.(fork(pty)?|system|popen|(posix_)?spawn\w*|exec\w+)")
PLATFORMS = "toolchains/platforms/"  # which kabuild itself loads
GPU = {"torch", "triton", "hip"}
INPUT_OUTPUT = {"os", "pathlib", "io", "shutil", "tempfile", "socket", "glob", *SPAWNERS}


@dataclass(frozen=True)
class Module:
    """One Python file: its path below the root, dotted name, syntax tree."""

    path: str
    name: str
    tree: ast.Module

    @property
    def part(self) -> str:
        """The part of kabuild that it belongs to; ``""`` for ``kabuild/__init__.py``."""
        return self.path.split("/")[1].removesuffix(".py").replace("__init__", "")

    def imports(self) -> Iterator[tuple[int, str]]:
        """Line and dotted name of all that it imports, at whatever level and in whatever way."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                yield from ((node.lineno, alias.name) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                base = self._base(node)
                yield from ((node.lineno, f"{base}.{alias.name}") for alias in node.names)
            elif isinstance(node, ast.Call) and node.args:
                called, argument = dotted(node.func), node.args[0]
                if called.rpartition(".")[2] in {"import_module", "__import__"} and isinstance(
                    argument, ast.Constant
                ):
                    yield node.lineno, str(argument.value)

    def _base(self, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        parts = self.name.split(".")
        keep = len(parts) - node.level + (1 if self.path.endswith("__init__.py") else 0)
        return ".".join([*parts[:keep], *([node.module] if node.module else [])])


@cache
def parse(text: str) -> ast.Module:
    return ast.parse(text)


def read_modules(root: Path, *trees: str) -> list[Module]:
    modules = []
    for tree in trees:
        for file in sorted((root / tree).rglob("*.py")):
            path = file.relative_to(root).as_posix()
            name = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
            modules.append(Module(path, name, parse(file.read_text())))
    return modules


def dotted(node: ast.AST) -> str:
    """``os.fork`` of a name or attribute; ``""`` of anything else."""
    if isinstance(node, ast.Name):
        return node.id
    return f"{dotted(node.value)}.{node.attr}" if isinstance(node, ast.Attribute) else ""


def is_below(name: str, parents: Iterable[str]) -> bool:
    return any(name == parent or name.startswith(f"{parent}.") for parent in parents)


def is_tool(module: Module) -> bool:
    """Whether a file runs inside sandboxes."""
    parts = module.path.split("/")
    in_rule = parts[0] == "rules" and bool({"tools", "adapters"} & {*parts[2:-1]})
    return in_rule or (parts[0] == "toolchains" and not module.path.startswith(PLATFORMS))


def check_layers(root: Path) -> Iterator[str]:
    """Parts import what comes before them; the towers never meet below the pipeline."""
    for module in read_modules(root, "kabuild"):
        if not module.part:
            continue
        if module.part not in LAYERS:
            yield f"{module.path}: '{module.part}' is no part of the architecture"
            continue
        order, tower = LAYERS[module.part]
        for line, name in module.imports():
            part = name.split(".")[1] if name.startswith("kabuild.") else ""
            if part not in LAYERS:
                continue
            other, other_tower = LAYERS[part]
            if other > order:
                yield f"{module.path}:{line}: {module.part} imports the later layer {part}"
            elif tower and other_tower and tower != other_tower:
                yield f"{module.path}:{line}: {module.part} imports {part} of the other tower"


def check_homes(root: Path) -> Iterator[str]:
    """Libraries stay where they belong, and kabuild knows nothing of GPUs."""
    for module in read_modules(root, "kabuild"):
        for line, name in module.imports():
            for library, home in HOMES.items():
                if is_below(name, [library]) and module.part != home:
                    yield f"{module.path}:{line}: {library} leaves {home}/"
            if is_below(name, {"rules", *GPU}):
                yield f"{module.path}:{line}: kabuild imports {name}"


def check_processes(root: Path) -> Iterator[str]:
    """Only the sandbox starts processes."""
    for module in read_modules(root, "kabuild"):
        if module.part == "sandbox":
            continue
        for line, name in module.imports():
            if is_below(name, SPAWNERS):
                yield f"{module.path}:{line}: {name} leaves sandbox/"
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Attribute) and SPAWNING.fullmatch(dotted(node)):
                yield f"{module.path}:{node.lineno}: {dotted(node)} leaves sandbox/"


def check_model(root: Path) -> Iterator[str]:
    """The model does no input or output."""
    for module in read_modules(root, "kabuild/model"):
        for line, name in module.imports():
            if is_below(name, INPUT_OUTPUT):
                yield f"{module.path}:{line}: the model imports {name}"
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Call) and dotted(node.func) in {"open", "print", "input"}:
                yield f"{module.path}:{node.lineno}: the model calls {dotted(node.func)}"


def check_rules(root: Path) -> Iterator[str]:
    """Rules use the public API and each other; what runs in sandboxes uses neither."""
    for module in read_modules(root, "rules", "toolchains"):
        for line, name in module.imports():
            if module.path.startswith(PLATFORMS):
                if is_below(name, ["kabuild"]) and not is_below(name, ["kabuild.platform"]):
                    yield f"{module.path}:{line}: a platform imports {name}, past kabuild.platform"
            elif is_tool(module):
                if is_below(name, ["kabuild"]):
                    yield f"{module.path}:{line}: a tool imports kabuild"
            elif is_below(name, ["kabuild"]) and not is_below(name, ["kabuild.rule"]):
                yield f"{module.path}:{line}: a rule imports {name}, past kabuild.rule"
            elif name.startswith("kabuild.rule.") and name.count(".") > 2:
                yield f"{module.path}:{line}: a rule imports {name}, past what kabuild.rule exports"
            elif is_below(name, GPU | INPUT_OUTPUT) or (
                ".tools" in name and not is_below(name, [TERMS.replace("/", ".")])
            ):
                yield f"{module.path}:{line}: a rule imports {name}; only its tools run"


def check_terms(root: Path) -> Iterator[str]:
    """What judging means is for rules, gates and compilers alike: it needs no other module.

    Its modules import each other relatively, for rules have them below another name.
    """
    for module in read_modules(root, TERMS):
        for line, name in module.imports():
            if not is_below(name, {*sys.stdlib_module_names, TERMS.replace("/", ".")}):
                yield f"{module.path}:{line}: the terms of judging import {name}"


def check_lengths(root: Path) -> Iterator[str]:
    """A file has one job, which fits into 400 lines; kernels are as long as they need to be."""
    files = [file for tree in TREES if tree != "tasks" for file in (root / tree).rglob("*")]
    for file in sorted([*files, *root.glob("*.toml")]):
        if file.suffix in MEASURED and file.is_file():
            lines = len(file.read_bytes().splitlines())
            if lines > MAX_LINES:
                yield f"{file.relative_to(root).as_posix()}: {lines} lines"


def check_cycles(root: Path) -> Iterator[str]:
    """No module imports itself through others, not even inside functions."""
    for tree in ("kabuild", "rules", "toolchains"):
        modules = read_modules(root, tree)
        graph = {module.name: set(_targets(module, modules)) for module in modules}
        for loop in sorted(_loops(graph)):
            yield " -> ".join([*loop, loop[0]])


def _targets(module: Module, modules: list[Module]) -> Iterator[str]:
    """The modules of one tree that a module imports; tools import from their directory by name."""
    names = {other.name for other in modules}
    parts = module.name.split(".")[:-1] if is_tool(module) else []
    origins = [".".join(parts[:count]) for count in range(len(parts), 0, -1)]
    for _, name in module.imports():
        candidates = [name, name.rpartition(".")[0]]
        candidates += [f"{origin}.{item}" for origin in origins for item in candidates if item]
        found = next((candidate for candidate in candidates if candidate in names), None)
        if found and found != module.name:
            yield found


def _loops(graph: Mapping[str, set[str]]) -> set[tuple[str, ...]]:
    """The groups of modules that all reach each other, sorted."""
    reach = {start: _reachable(start, graph) for start in graph}
    return {
        tuple(sorted(other for other in reach[start] if start in reach[other]))
        for start in graph
        if start in reach[start]
    }


def _reachable(start: str, graph: Mapping[str, set[str]]) -> set[str]:
    found: set[str] = set()
    stack = list(graph[start])
    while stack:
        name = stack.pop()
        if name not in found:
            found.add(name)
            stack.extend(graph[name])
    return found


Check = Callable[[Path], Iterator[str]]
CHECKS: tuple[Check, ...] = (
    check_layers,
    check_homes,
    check_processes,
    check_model,
    check_rules,
    check_terms,
    check_lengths,
    check_cycles,
)


@pytest.mark.parametrize("check", CHECKS)
def test_the_project_keeps_its_rules(check: Check) -> None:
    assert not list(check(ROOT))


def plant(root: Path, files: Mapping[str, str]) -> Path:
    for path, text in files.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return root


HEALTHY = {
    "pyproject.toml": "x = 1\n" * MAX_LINES,
    "kabuild/__init__.py": "",
    "kabuild/__main__.py": "from kabuild.cli import main",
    "kabuild/base/errors.py": "import os",
    "kabuild/model/label.py": "import re\nfrom kabuild.base.errors import E",
    "kabuild/rule/__init__.py": "from kabuild.rule import attr\nfrom kabuild.rule.attr import A",
    "kabuild/rule/attr.py": "from kabuild.model.label import L",
    "kabuild/loading/x.py": "from kabuild import __version__\nfrom kabuild.rule import attr",
    "kabuild/remote/x.py": "import grpc\nfrom grpc import aio",
    "kabuild/sandbox/x.py": "import os, subprocess\nos.fork()",
    "kabuild/pipeline.py": "import kabuild.loading.x, kabuild.sandbox.x",
    "kabuild/cli/main.py": "import click\nfrom kabuild.pipeline import P",
    "rules/a/rule.py": "from kabuild.rule import attr\nfrom ..b.rule import RULE",
    "rules/b/rule.py": "import re\nfrom kabuild.rule import Rule, attr",
    "rules/b/tools/x.py": "import torch, subprocess\nimport y",
    "rules/b/tools/y.py": "",
    f"{TERMS}/x.py": "import json\nfrom .y import z",
    f"{TERMS}/y.py": "from .z import a",
    "toolchains/hip/driver.py": "import subprocess",
    "toolchains/platforms/x/devices.py": "import ctypes\nfrom kabuild.platform import Device",
}


@pytest.mark.parametrize("check", CHECKS)
def test_a_healthy_tree_passes(tmp_path: Path, check: Check) -> None:
    assert not list(check(plant(tmp_path, HEALTHY)))


@pytest.mark.parametrize(
    ("check", "path", "text", "violation"),
    [
        (check_layers, "kabuild/base/x.py", "import kabuild.model.label", "later layer model"),
        (check_layers, "kabuild/rule/x.py", "def f():\n from kabuild.loading import x", ":2: rule"),
        (check_layers, "kabuild/store/x.py", "from kabuild.rule import attr", "other tower"),
        (check_layers, "kabuild/loading/y.py", "from kabuild.store import x", "later layer store"),
        (
            check_layers,
            "kabuild/toolchain/x.py",
            "if TYPE_CHECKING:\n    from kabuild.rule.attr import A",
            ":2: toolchain imports the later layer rule",
        ),
        (check_layers, "kabuild/base/x.py", "from ..model import label", "later layer model"),
        (check_layers, "kabuild/base/__init__.py", "from ..cli import x", "later layer cli"),
        (
            check_layers,
            "kabuild/base/x.py",
            "import importlib\nimportlib.import_module('kabuild.cli.main')",
            ":2: base imports the later layer cli",
        ),
        (check_layers, "kabuild/extra/x.py", "", "'extra' is no part of the architecture"),
        (check_homes, "kabuild/store/x.py", "import grpc.aio", "grpc leaves remote/"),
        (check_homes, "kabuild/report/x.py", "from click import echo", "click leaves cli/"),
        (check_homes, "kabuild/report/x.py", "import torch.cuda", "kabuild imports torch.cuda"),
        (check_homes, "kabuild/cli/x.py", "def f():\n import triton", ":2: kabuild imports triton"),
        (check_homes, "kabuild/loading/y.py", "from rules.a import rule", "imports rules.a"),
        (check_homes, "kabuild/loading/y.py", "__import__('rules.a')", "imports rules.a"),
        (check_processes, "kabuild/execution/x.py", "from subprocess import run", "subprocess.run"),
        (check_processes, "kabuild/cli/x.py", "import os\nos.fork()", ":2: os.fork leaves"),
        (check_processes, "kabuild/cli/x.py", "import os\nx = os.execvp", "os.execvp leaves"),
        (check_model, "kabuild/model/x.py", "from pathlib import Path", "imports pathlib.Path"),
        (check_model, "kabuild/model/x.py", "import os.path", "imports os.path"),
        (check_model, "kabuild/model/x.py", "open('x')", "calls open"),
        (check_rules, "rules/a/rule.py", "from kabuild.model.label import L", "past kabuild.rule"),
        (check_rules, "rules/a/x.py", "import kabuild", "a rule imports kabuild, past"),
        (check_rules, "rules/a/rule.py", "from kabuild.rule.attr import A", "rule exports"),
        (check_rules, "rules/a/rule.py", "import torch", "only its tools run"),
        (check_rules, "rules/a/rule.py", "from pathlib import Path", "only its tools run"),
        (check_rules, "rules/a/rule.py", "from ..b.tools import x", "only its tools run"),
        (check_rules, "rules/a/tools/x.py", "from kabuild.rule import attr", "a tool imports"),
        (check_rules, "rules/a/tools/deep/x.py", "import kabuild", "a tool imports kabuild"),
        (check_rules, "toolchains/x/y.py", "import kabuild.base", "a tool imports kabuild"),
        (
            check_terms,
            f"{TERMS}/x.py",
            "def f():\n import torch",
            ":2: the terms of judging import",
        ),
        (check_terms, f"{TERMS}/x.py", "from base.spec import S", "import base.spec"),
        (check_rules, "toolchains/platforms/x/y.py", "import kabuild.model", "past kabuild.platf"),
        (check_lengths, "kabuild/base/x.py", "\n" * 401, "kabuild/base/x.py: 401 lines"),
        (check_lengths, "toolchains/hip/a.h", "\n" * 401, "a.h: 401 lines"),
        (check_lengths, "toolchains/a/k.hip", "x\n" * 500, "k.hip: 500 lines"),
        (check_lengths, "WORKSPACE.toml", "\n" * 401, "WORKSPACE.toml: 401 lines"),
        (
            check_cycles,
            "kabuild/model/label.py",
            "def f():\n    from kabuild.rule.attr import A",
            "kabuild.model.label -> kabuild.rule.attr -> kabuild.model.label",
        ),
        (check_cycles, "rules/b/rule.py", "from ..a import rule", "rules.a.rule -> rules.b.rule"),
        (check_cycles, "rules/b/tools/y.py", "from x import z", "tools.x -> rules.b.tools.y"),
    ],
)
def test_each_rule_can_be_broken(
    tmp_path: Path, check: Check, path: str, text: str, violation: str
) -> None:
    found = list(check(plant(tmp_path, {**HEALTHY, path: text})))
    assert len(found) == 1
    assert violation in found[0]
