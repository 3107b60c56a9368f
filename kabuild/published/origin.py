"""The origins of judging code: this kabuild, an action, or the publisher."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath

from kabuild.base.canonical import parse_fields
from kabuild.bundle.candidates import JUDGES
from kabuild.bundle.manifest import Record
from kabuild.bundle.verdicts import VERDICTS, is_skipped
from kabuild.execution.inputs import TOOLCHAINS
from kabuild.execution.prepared import BASE_ENV
from kabuild.loading import source_roots
from kabuild.model.action import VERDICT_FILE
from kabuild.model.digest import Digest
from kabuild.model.result import OutputFile
from kabuild.store.trees import read_directory

_OF_TOOLCHAIN = "${toolchain:"
_MOST_SHOWN = 80


@dataclass(frozen=True)
class Origins:
    """Input files that neither belong to this kabuild nor were made by an action of the bundle.

    Attributes:
        foreign: paths of judging code among them, and commands that run other code than the
            judge's files; if empty, this kabuild's own code judged.
        given: the number of other files by directory and suffix: a task's files, and solutions.
            Compiled code among them was not built from published sources, or not by an action that
            a replay runs.
    """

    foreign: tuple[str, ...]
    given: Mapping[str, int]


def origins(records: Sequence[Record], get: Callable[[Digest], bytes]) -> Origins:
    """The origins of all inputs of the records. Raises whatever ``get`` raises."""
    made = {file.digest.hash for record in records for file in _reproducible(record)}
    built = {file.digest.hash for record in records for file in _compared(record)}
    shipped = _shipped()
    foreign: set[str] = set()
    given: set[tuple[str, str]] = set()
    for record in records:
        if record.replayable:
            foreign.update(_variables(get(record.command)))
    for root, toolchains, command in {(r.root, r.toolchains, r.command) for r in records}:
        fingerprints = {f"{TOOLCHAINS}/{name}.json" for name in toolchains}
        files = dict(read_directory(root, get).walk())
        foreign.update(_other_code(get(command), files))
        for path, node in files.items():
            if node.digest.hash in shipped or path in fingerprints:
                continue
            if path.startswith((*JUDGES, f"{TOOLCHAINS}/")):
                if node.digest.hash not in built and not _is_skipped(path, node.digest, get):
                    foreign.add(path)
            elif node.digest.hash not in made:
                given.add((_kind(path), node.digest.hash))
    kinds = Counter(kind for kind, _ in given)
    return Origins(tuple(sorted(foreign)), dict(sorted(kinds.items())))


def _other_code(command: bytes, files: Collection[str]) -> Iterator[str]:
    """What a command runs that is no file of the judge: a text for people.

    An interpreter also runs what is in its arguments, or beside a task.
    """
    fields = parse_fields(command)
    argv = [value.decode() for number, value in fields if number == 1 and isinstance(value, bytes)]
    program, script = [*argv, "", ""][:2]
    ours = script in files and script.startswith(JUDGES)
    if not ours or not program.startswith(_OF_TOOLCHAIN):
        yield f"{program} {script}"[:_MOST_SHOWN]


def _variables(command: bytes) -> Iterator[str]:
    """The variables that kabuild's own rules do not set.

    They have interpreters load other code, and PyTorch, the baseline, work on one processor.
    """
    for number, value in parse_fields(command):
        if number == 2 and isinstance(value, bytes):
            pair = dict(parse_fields(value))
            name, content = (_text(pair.get(part, b"")) for part in (1, 2))
            if BASE_ENV.get(name) != content:
                yield f"{name}={content}"[:_MOST_SHOWN]


def _text(value: int | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _is_skipped(path: str, digest: Digest, get: Callable[[Digest], bytes]) -> bool:
    gate = path.removeprefix(VERDICTS).removesuffix(".json")
    return path == f"{VERDICTS}{gate}.json" and is_skipped(gate, get(digest))


def _reproducible(record: Record) -> Iterator[OutputFile]:
    """The outputs of which a replay compares every byte. Nobody can make an agent's again."""
    if record.replayable:
        yield from (f for f in record.files if not (record.timed and f.path.endswith(".json")))


def _compared(record: Record) -> Iterator[OutputFile]:
    """The outputs that a replay compares. A record may claim to have made any other file."""
    if record.replayable:
        names = {VERDICT_FILE} if record.timed else {file.path for file in record.files}
        yield from (file for file in record.files if file.path in names)


def _kind(path: str) -> str:
    """``task/*.py`` for ``task/reference.py``; a file at the top has its name."""
    pure = PurePosixPath(path)
    return f"{pure.parts[0]}/*{pure.suffix}" if len(pure.parts) > 1 else path


@cache
def _shipped() -> frozenset[str]:
    """Digests of all files that this kabuild has for actions."""
    return frozenset(
        Digest.of(path.read_bytes()).hash
        for part in _parts()
        for path in part.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    )


def _parts() -> Iterator[Path]:
    roots = source_roots(Path.cwd())
    yield roots["kabuild"] / "sandbox"
    yield roots["builtin"] / "rules"
    yield roots["builtin"] / "toolchains"
