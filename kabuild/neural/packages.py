"""The tasks of a model as packages in the workspace, and ``model.json``, which knows them all."""

from __future__ import annotations

import contextlib
import json
import keyword
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from kabuild.base.bounded_json import read_json
from kabuild.base.errors import LoadError, Position, Reason, UsageError
from kabuild.base.fs import atomic_write
from kabuild.base.reading import read_plain
from kabuild.imports.lock_text import toml
from kabuild.loading.roots import BUILD_FILE
from kabuild.neural.values import MALFORMED, check_counts, check_shares, count, number, share, text

FILE = "model.json"
WHOLE, STEP = "whole", "step"
AGAIN = "write it again with: kabuild model extract MODEL.py -o DIRECTORY"
SCHEMA = 2
_NAME = re.compile(r"[a-z_][a-z0-9_]{0,63}", re.ASCII)
_CALLED = re.compile(r"\bpart_(\w+)\(", re.ASCII)
_MOST_BYTES = 64 << 20
_HEAD = "# Written by `kabuild model extract`.\n"


@dataclass(frozen=True)
class Part:
    """One task of a model.

    Attributes:
        attrs: its declaration.
        kernel, reference: the texts of its files; empty once they are written.
        calls: how often each config occurs in one call of the model, in the order of ``configs``.
    """

    name: str
    attrs: Mapping[str, Any] = field(hash=False, repr=False)
    kernel: str = field(repr=False)
    reference: str = field(repr=False)
    calls: tuple[int, ...]

    @classmethod
    def read(cls, value: Mapping[str, Any]) -> Self:
        """From JSON. Raises one of MALFORMED for another form."""
        calls = tuple(value["calls"])
        if not all(map(count, calls)):
            raise ValueError("calls are counts above 0")
        attrs = dict(value["attrs"])
        _check(attrs)
        if len(calls) != len(attrs["configs"]):
            raise ValueError("a config has no count")
        texts = (text(value["kernel"]), text(value["reference"]))
        return cls(_name(value["name"]), attrs, *texts, calls)


@dataclass(frozen=True)
class Graph:
    """A model's forward as text.

    Attributes:
        forward: a function ``forward(w, c, *arguments)`` that calls parts by their names.
        held: the owner and the name of each of ``w``.
        constants: expressions of each of ``c``.
        functions: the texts of the parts by the names that ``forward`` calls, as PyTorch has them.
    """

    forward: str = field(repr=False)
    held: tuple[tuple[str, str], ...]
    constants: tuple[str, ...]
    functions: Mapping[str, str] = field(hash=False, repr=False)

    @classmethod
    def read(cls, value: Mapping[str, Any]) -> Self:
        """From JSON. Raises one of MALFORMED for another form."""
        return cls(
            forward=text(value["forward"]),
            held=tuple((text(owner), text(name)) for owner, name in value["held"]),
            constants=tuple(map(text, value["constants"])),
            functions={_name(name): text(body) for name, body in value["functions"].items()},
        )

    def to_json(self) -> dict[str, Any]:
        """The form in ``model.json``."""
        return {
            "forward": self.forward,
            "held": [list(item) for item in self.held],
            "constants": list(self.constants),
            "functions": dict(self.functions),
        }


@dataclass(frozen=True)
class Whole:
    """A task of the whole model: a call of it, or a training step.

    Attributes:
        attrs: its declaration.
        reference, adapter: the texts of its files; ``adapter`` is empty if it needs none.
    """

    attrs: Mapping[str, Any] = field(hash=False)
    reference: str
    adapter: str = ""

    @classmethod
    def read(cls, value: Mapping[str, Any]) -> Self:
        """From JSON. Raises one of MALFORMED for another form."""
        attrs = dict(value["attrs"])
        _check(attrs)
        return cls(attrs, text(value["reference"]), text(value.get("adapter", "")))


@dataclass(frozen=True)
class Extracted:
    """The tasks of a model.

    Attributes:
        left_out: by part, a class and a sentence.
        step: None of a model without a loss.
    """

    parts: tuple[Part, ...]
    left_out: Mapping[str, tuple[str, str]] = field(hash=False)
    whole: Whole = field(repr=False)
    step: Whole | None = field(repr=False)
    graph: Graph

    @classmethod
    def read(cls, facts: Mapping[str, Any]) -> Self:
        """From JSON. Raises one of MALFORMED for another form."""
        if facts["schema"] != SCHEMA:
            raise ValueError("another schema")
        parts = tuple(map(Part.read, facts["parts"]))
        if len({*(part.name for part in parts), WHOLE, STEP}) != len(parts) + 2:
            raise ValueError("two parts have the same name")
        absent = {
            text(item["name"]): (text(item["reason"]), text(item["why"]))
            for item in facts["left_out"]
        }
        step = None if facts["step"] is None else Whole.read(facts["step"])
        return cls(parts, absent, Whole.read(facts["whole"]), step, Graph.read(facts["graph"]))


def package_of(directory: Path, root: Path) -> str:
    """The package of a directory in the workspace ``root``. Raises UsageError."""
    try:
        full, root = directory.resolve(), root.resolve()
    except (OSError, RuntimeError) as error:  # RuntimeError: a loop of links
        hint = "give a directory in the workspace"
        raise UsageError(Reason.BAD_FLAG, f"{directory}: {error}", hint=hint) from None
    if not full.is_relative_to(root) or full == root:
        what = f"{directory} is not a directory in the workspace {root}"
        raise UsageError(Reason.BAD_FLAG, what, hint="such as tasks/my_model")
    return full.relative_to(root).as_posix()


def check_free(directory: Path) -> None:
    """Raise UsageError for a directory that has files of others."""
    is_free = not directory.exists() or (directory.is_dir() and not any(directory.iterdir()))
    if not is_free and not (directory / FILE).is_file():
        what = f"{directory} exists and was not written by 'kabuild model extract'"
        raise UsageError(Reason.BAD_FLAG, what, hint="give a directory that does not exist")


def write_packages(directory: Path, model: bytes, found: Extracted) -> None:
    """Write the packages of all parts and of the whole model. Solutions that are there stay."""
    for part in found.parts:
        package = directory / part.name
        atomic_write(package / BUILD_FILE, declaration(part.name, part.attrs, part.calls).encode())
        atomic_write(package / f"{part.name}.py", part.kernel.encode())
        atomic_write(package / "reference.py", part.reference.encode())
    for name, task in ((WHOLE, found.whole), (STEP, found.step)):
        if task is None:
            remove_package(directory, name)
            continue
        files = {"model.py": model, "reference.py": task.reference.encode()}
        if task.adapter:
            files["adapter.py"] = task.adapter.encode()
        files[BUILD_FILE] = declaration(name, task.attrs, (1,)).encode()
        for file, content in files.items():
            atomic_write(directory / name / file, content)


def remove_package(directory: Path, name: str) -> None:
    """Remove the files of a task. Solutions that are there stay."""
    for file in files_of(name):
        (directory / file).unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # it has others
        (directory / name).rmdir()


def files_of(name: str) -> list[str]:
    """The files that a task may have, below the model's directory."""
    files = (BUILD_FILE, f"{name}.py", "reference.py", "model.py", "adapter.py")
    return [f"{name}/{file}" for file in files]


def declaration(name: str, attrs: Mapping[str, Any], calls: Sequence[int]) -> str:
    """A ``BUILD.toml`` for one task of the family ``call``."""
    lines = [f"{_HEAD}[[call]]", f"name = {toml(name)}"]
    for key, value in attrs.items():
        if key == "configs" and len(calls) == len(value):
            rows = zip(value, calls, strict=True)
            lines += ["configs = ["]
            lines += [f"  {toml(sizes)},  # {n} in a call of the model" for sizes, n in rows]
            lines += ["]"]
        elif value not in ([], {}) or key == "dims":
            lines.append(f"{key} = {toml(value)}")
    return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class Place:
    """What a part is to its model.

    Attributes:
        share: of the time of the model's operators, as the profile had it.
        roof_share: the least time that the machine allows, as a share of the part's own.
        calls: how often each config occurs in one call of the model, in the order of ``configs``.
        is_task: whether it was admitted.
    """

    share: float
    roof_share: float
    calls: tuple[int, ...]
    is_task: bool


@dataclass(frozen=True)
class Known:
    """``model.json``: what is known of a model besides its tasks.

    Attributes:
        platform: where it was profiled.
        parts: those that were to be tasks, by name.
    """

    name: str
    platform: str
    parts: Mapping[str, Place] = field(hash=False)
    graph: Graph

    def text(self) -> str:
        """The file."""
        value = {
            "schema": SCHEMA,
            "name": self.name,
            "platform": self.platform,
            "parts": {
                name: {
                    "share": part.share,
                    "roof_share": part.roof_share,
                    "calls": list(part.calls),
                    "is_task": part.is_task,
                }
                for name, part in self.parts.items()
            },
            "graph": self.graph.to_json(),
        }
        return json.dumps(value, indent=1) + "\n"

    def check_calls(self) -> None:
        """Raise ValueError if the forward calls a part that is missing."""
        for name in _CALLED.findall(self.graph.forward):
            if f"part_{name}" not in self.graph.functions:
                raise ValueError(f"its forward calls part '{name}', which is missing")

    @classmethod
    def load(cls, directory: Path) -> Self:
        """The file in a directory. Raises UsageError without one, LoadError for another form."""
        path = directory / FILE
        try:
            data = read_plain(path, _MOST_BYTES)
        except OSError as error:
            what = f"{path} cannot be read: {error.strerror}"
            hint = "write it with: kabuild model extract MODEL.py -o DIRECTORY"
            raise UsageError(Reason.BAD_FLAG, what, hint=hint) from None
        try:
            value = read_json(data)
            if value["schema"] != SCHEMA:
                raise ValueError(f"schema {value['schema']!r:.20}, expected {SCHEMA}")
            known = cls(
                _name(value["name"]),
                text(value["platform"]),
                {_name(name): _place(part) for name, part in value["parts"].items()},
                Graph.read(value["graph"]),
            )
            check_shares([part.share for part in known.parts.values()])
            known.check_calls()
        except MALFORMED as error:
            what = f"it is not what 'kabuild model extract' writes: {_damage(error)}"
            line = error.lineno if isinstance(error, json.JSONDecodeError) else 0
            position = Position(str(path), line)
            raise LoadError(Reason.BAD_ATTRIBUTE, what, position=position, hint=AGAIN) from None
        return known


def _damage(error: Exception) -> str:
    """What is wrong with a file's form, for people."""
    if isinstance(error, json.JSONDecodeError):
        return f"it is damaged, no JSON: {error.msg}"
    if isinstance(error, UnicodeDecodeError):
        return "it is damaged, no UTF-8 text"
    if isinstance(error, KeyError):
        return f"it has no '{error.args[0]!s:.80}'"
    if isinstance(error, TypeError | AttributeError | LookupError) and "expected" not in str(error):
        return "a value in it is of another type"
    return str(error)


def _place(value: Mapping[str, Any]) -> Place:
    calls = tuple(map(count, value["calls"]))
    shares = (share(value["share"]), number(value["roof_share"]))
    return Place(*shares, calls, value["is_task"] is True)


def _check(attrs: Mapping[str, Any]) -> None:
    """Raise ValueError for what a declaration cannot express."""
    check_counts(attrs)
    toml(attrs)
    for name in attrs:
        _name(name)


def _name(value: Any) -> str:
    if not _NAME.fullmatch(text(value)) or keyword.iskeyword(value):
        raise ValueError("a name is not a Python identifier")
    return str(value)


@contextlib.contextmanager
def undone(directory: Path, files: Iterable[str]) -> Iterator[None]:
    """Put ``files`` of a directory back as they were if the block raises, also on Ctrl-C.

    Directories that are empty then are removed, the ``directory`` and new ones above it included.
    Raises ``OSError``.
    """
    before = {directory / name: _content(directory / name) for name in files}
    above = [parent for parent in directory.parents if not parent.exists()]
    try:
        yield
    except BaseException:
        for path, content in before.items():
            if content is None:
                path.unlink(missing_ok=True)
            elif content != _content(path):
                atomic_write(path, content)
        for home in (*dict.fromkeys(path.parent for path in before), directory, *above):
            with contextlib.suppress(OSError):  # it has other files, or is gone
                home.rmdir()
        raise


def _content(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None
