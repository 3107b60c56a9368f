"""New workspaces, tasks and agents, from templates that ship with the rules.

A template is the directory ``rules/<kind>/template``. Each of its files ends in ``.in``, and
``$name`` in it is the name of the new target: ``kernel.hip.in`` becomes ``<name>.hip``.
"""

from __future__ import annotations

import keyword
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import Template

from kabuild.base.errors import LoadError, Position, Reason, UsageError
from kabuild.base.fs import atomic_write
from kabuild.base.printing import escaped
from kabuild.base.reading import read_plain
from kabuild.base.suggest import suggest
from kabuild.base.toml_text import quoted
from kabuild.loading import Loader, load_workspace
from kabuild.loading.roots import BUILD_FILE, WORKSPACE_FILE, builtin_root

AGENT = "agent"
TASKS, AGENTS = "tasks", "agents"
_TEMPLATE, _SUFFIX = "template", ".in"
_NAMED = ("kernel", AGENT)
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_MAX_NAME = 64
_MOST_BYTES = 16 << 20
_IMPORT = re.compile(r"^(?:from|import) (.*)", re.MULTILINE)
_WORKSPACE = """\
# Flags on the command line come before what this file says.
{name}
[defaults]
platform = "cpu"          # 'kabuild doctor' lists what else this machine can do
agent    = "none"         # judges each task's own kernel: a control that comes out at 1.0x
"""
_IGNORED = "/out/\n"


def new_workspace(directory: Path) -> list[Path]:
    """Make ``directory`` a workspace; returns the written files.

    Raises UsageError if it is one already, cannot be written, or has an unprintable name.
    """
    path = os.path.realpath(directory)  # Path.resolve() raises on a loop of links
    shown = escaped(path.replace("\n", "\\n").replace("\t", "\\t"))
    if shown != path:
        raise UsageError(
            Reason.BAD_FLAG,
            f"'{shown}' cannot hold a workspace: its path has characters that do not print",
            hint="choose another path",
        )
    file = directory / WORKSPACE_FILE
    if os.path.lexists(file):  # a link to nothing, too: it would be written where it leads
        raise UsageError(
            Reason.BAD_FLAG,
            f"{file} exists; nothing was changed",
            hint="to add a task to this workspace: kabuild new task hip2hip/my_kernel",
        )
    name = f"name = {quoted(Path(path).name or 'workspace')}\n"
    files = {WORKSPACE_FILE: _WORKSPACE.format(name=name)}
    if not os.path.lexists(directory / ".gitignore"):
        files[".gitignore"] = _IGNORED
    return _write(directory, files)


def new_task(workspace: Path, family: str, name: str) -> list[Path]:
    """Declare a task below ``tasks/<family>/<name>``; returns the written files.

    Raises UsageError for a name that is not valid for a function, an unknown family, or an existing
    task.
    """
    _check_name(name)
    template = _template(workspace, family, families(workspace))
    files = {path: Template(text) for path, text in template.items()}
    if name in _taken(template):
        raise UsageError(
            Reason.BAD_LABEL,
            f"'{name}' cannot be the name of the task: it has another meaning in its files",
            hint="choose another name",
        )
    directory = workspace / TASKS / family / name
    if directory.exists():
        raise UsageError(
            Reason.BAD_FLAG,
            f"{directory} exists; nothing was changed",
            hint="choose another name, or remove the directory first",
        )
    written = _write(
        directory, {_renamed(p, name): text.substitute(name=name) for p, text in files.items()}
    )
    try:
        Loader(load_workspace(workspace)).package(f"{TASKS}/{family}/{name}")
    except LoadError as error:  # such as a keyword of the language, which the rule knows
        shutil.rmtree(directory)
        raise UsageError(
            Reason.BAD_LABEL,
            f"'{name}' cannot be declared: {error.message}",
            position=error.position,
            hint=error.hint or "nothing was written",
        ) from None
    return written


def new_agent(workspace: Path, name: str) -> list[Path]:
    """Declare an agent in ``agents/``; returns the written files.

    Raises UsageError for an invalid name, or an existing agent.
    """
    _check_name(name)
    directory = workspace / AGENTS
    files = {
        _renamed(path, name): Template(text).safe_substitute(name=name)
        for path, text in _template(workspace, AGENT, (AGENT,)).items()
    }
    for path in files.keys() - {BUILD_FILE}:
        if os.path.lexists(directory / path):
            raise UsageError(
                Reason.BAD_FLAG,
                f"{directory / path} exists; nothing was changed",
                hint="choose another name, or remove the file first",
            )
    build = directory / BUILD_FILE
    if build.exists():
        files[BUILD_FILE] = f"{_declared(build).rstrip()}\n\n{files[BUILD_FILE]}"
    return _write(directory, files)


def _declared(file: Path) -> str:
    """The text of a BUILD.toml. Raises LoadError if it is not text."""
    try:
        return read_plain(file, _MOST_BYTES).decode()
    except UnicodeDecodeError:
        why = "is not UTF-8"
    except OSError as error:
        why = f"cannot be read: {error.strerror}"
    raise LoadError(Reason.TOML_SYNTAX, why, position=Position(str(file)))


def families(workspace: Path) -> Sequence[str]:
    """The kinds of tasks that have a template, sorted."""
    found = {path.parent.name for root in _roots(workspace) for path in root.glob(f"*/{_TEMPLATE}")}
    return sorted(found - {AGENT})


def _roots(workspace: Path) -> tuple[Path, ...]:
    return workspace / "rules", builtin_root() / "rules"


def _template(workspace: Path, kind: str, known: Sequence[str]) -> Mapping[str, str]:
    """The files of a kind's template by name, without the suffix. Raises UsageError."""
    if kind not in known:
        raise UsageError(
            Reason.UNKNOWN_RULE,
            f"unknown family '{kind}'",
            hint=suggest(kind, known) or f"families: {', '.join(families(workspace))}",
        )
    directory = next(
        path for root in _roots(workspace) if (path := root / kind / _TEMPLATE).is_dir()
    )
    return {
        file.name.removesuffix(_SUFFIX): file.read_text(encoding="utf-8")
        for file in sorted(directory.glob(f"*{_SUFFIX}"))
    }


def _taken(template: Mapping[str, str]) -> set[str]:
    """The names of a template's files, and the modules that they import."""
    imports = (_IMPORT.findall(text) for path, text in template.items() if ".py" in path)
    stems = {path.partition(".")[0] for path in template} - {*_NAMED}
    return stems.union(*(line.split() for lines in imports for line in lines))


def _renamed(path: str, name: str) -> str:
    stem, dot, suffix = path.partition(".")
    return f"{name}{dot}{suffix}" if stem in _NAMED else path


def _check_name(name: str) -> None:
    """Check a name: it becomes that of a directory, a target, and a function."""
    hint = f"use letters, digits and '_', a letter first, {_MAX_NAME} at most"
    if keyword.iskeyword(name):
        hint = f"it is a keyword of Python: choose another name, such as '{name}_task'"
    elif len(name) <= _MAX_NAME and _NAME.fullmatch(name):
        return
    what = f"'{name[:_MAX_NAME]}' cannot be the name of a task or an agent"
    raise UsageError(Reason.BAD_LABEL, what, hint=hint)


def _write(directory: Path, files: Mapping[str, str]) -> list[Path]:
    written = []
    for path, text in files.items():
        file = directory / path
        try:
            atomic_write(file, text.encode())
        except OSError as error:
            raise UsageError(
                Reason.BAD_FLAG,
                f"cannot be written: {error.strerror}",
                position=Position(str(file)),
            ) from None
        written.append(file)
    return written
