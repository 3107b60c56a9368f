"""All gates of a task judged what was made of the source that is shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from kabuild.base.errors import BundleError
from kabuild.bundle.candidates import check_candidates
from kabuild.bundle.manifest import Record
from kabuild.model.action import Action
from kabuild.model.digest import Digest
from kabuild.model.label import Label
from kabuild.model.platform import Platform
from kabuild.model.result import OutputFile
from kabuild.store.merkle import Directory, FileNode, build
from tests.testkit.bundles import RECORD

TASK = "//tasks/softmax"
SOURCE, OTHER = b"the source that is shown", b"the source that is not"
COMPILES = (
    "python3",
    "tools/compile.py",
    "--source=candidate/kernel",
    "--signature=signature.json",
)
GIVEN: Mapping[str, bytes] = {
    "tools/compile.py": b"compiles",
    "signature.json": b'{"x": "T[rows]"}',
    "ahead.json": b"{}",
    ".kabuild/toolchains/python.json": b"{}",
}
Found = tuple[Record, bytes, bytes]


def made_by(name: str, **changes: Any) -> Record:
    """The record of an action of TASK; of a gate, if ``name`` is one."""
    gate = "" if "." in name else name
    return replace(
        RECORD, **{"label": f"{TASK}:softmax.{name}", "task": TASK, "gate": gate} | changes
    )


def judged(
    inputs: list[Found], argv: tuple[str, ...] = COMPILES, **files: Mapping[str, bytes]
) -> None:
    """Check records, each with what it found in ``candidate/`` and what it made of it.

    ``files`` are what an action finds besides, by the last part of its name.
    """
    records: list[Record] = []
    roots: dict[Digest, Directory] = {}
    actions: dict[Digest, Action] = {}
    blobs: dict[Digest, bytes] = {}
    for record, found, made in inputs:
        name = record.label.partition(".")[2]
        candidate = {"candidate/kernel": found} if found else {}
        content = {**GIVEN, **files.get(name.partition(".")[0], {}), **candidate}
        root = build((path, FileNode(Digest.of(data))) for path, data in content.items())
        blobs |= {Digest.of(data): data for data in content.values()}
        key = Digest.of(record.label.encode())
        file = OutputFile("kernel.so", Digest.of(made))
        label = Label.parse(record.label)
        hidden = name.startswith("second")
        actions[key] = Action(label, argv if hidden else COMPILES, (), (), Platform("cpu"))
        records.append(replace(record, key=key, root=root.digest, files=(file,) if made else ()))
        roots[root.digest] = root
    check_candidates(records, roots, actions, blobs.__getitem__)


def laundered(record: Record, source: bytes) -> list[Found]:
    """A gate that times what another action made, beside an honest compilation."""
    return [
        (record, source, b"fast elf"),
        (made_by("compile"), SOURCE, b"elf"),
        (made_by("perf"), b"fast elf", b""),
    ]


def test_gates_judge_what_was_compiled_from_the_source_that_is_shown() -> None:
    judged(
        [
            (made_by("baseline.compile"), OTHER, b"elf 2"),
            (made_by("compile"), SOURCE, b"elf"),
            (made_by("perf"), b"elf", b""),
            (made_by("sanitize.compile"), SOURCE, b"watched elf"),
            (made_by("sanitize"), b"watched elf", b""),
            (made_by("score"), b"", b""),
        ]
    )
    judged(laundered(made_by("second.compile"), SOURCE))


@pytest.mark.parametrize(
    "change", [{}, {"replayable": False}, {"timed": True}, {"label": "//tasks/gemm:gemm.compile"}]
)
def test_a_gate_that_judged_another_kernel_is_refused(change: dict[str, Any]) -> None:
    """Its times would be shown beside the source of the first gate, and be reproduced."""
    source = SOURCE if change.keys() & {"replayable", "timed"} else OTHER
    with pytest.raises(BundleError, match="judged another kernel than the task's first gate"):
        judged(laundered(made_by("second.compile", **change), source))


@pytest.mark.parametrize(
    ("argv", "files"),
    [
        (("python3", "-c", "print()", "--source=candidate/kernel"), {}),
        (("sh",), {}),
        (("cp", "fast.so", "out/kernel.so"), {"fast.so": b"elf"}),
        (("python3", "mine.py", "--source=candidate/kernel"), {"mine.py": b"compiles"}),
        (("python3", "tools/compile.py", "--source=signature.json"), {}),
        (("python3", "tools/compile.py", "--source=candidate/../other"), {}),
        (("python3", "tools/compile.py", "--source=candidate/not_there"), {}),
        ((*COMPILES, "--source=other"), {"other": OTHER}),
        ((*COMPILES, "--sour=./other"), {"other": OTHER}),
        ((*COMPILES, "--source=/proc/self/environ"), {}),
        ((*COMPILES, "/proc/self/environ"), {}),
        ((*COMPILES, "--source=candidate/../../tmp/other"), {}),
        (COMPILES, {"task/other.hip": OTHER}),
        (COMPILES, {"signature.json": OTHER}),
        (COMPILES, {"candidate/second": SOURCE}),
        (COMPILES, {".kabuild/toolchains/python.h": OTHER}),
    ],
)
def test_what_did_not_compile_the_shown_source_alone_makes_no_candidate(
    argv: tuple[str, ...], files: dict[str, bytes]
) -> None:
    with pytest.raises(BundleError, match="judged another kernel than the task's first gate"):
        judged(laundered(made_by("second.compile"), SOURCE), argv, second=files)


@pytest.mark.parametrize("name", ["a.hip", "kernel.h", "zzz", "inner/kernel"])
def test_a_first_gate_with_a_second_source_is_refused(name: str) -> None:
    """A page shows the first file; the command may compile another one."""
    with pytest.raises(BundleError, match=r"found 2 files in candidate/: only '.*' is shown"):
        judged([(made_by("compile"), SOURCE, b"elf")], compile={f"candidate/{name}": OTHER})
