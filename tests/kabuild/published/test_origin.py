"""Whose code judged."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from kabuild.base.canonical import message_field, repeated_field, text_field
from kabuild.execution.prepared import BASE_ENV
from kabuild.loading import builtin_root
from kabuild.model.digest import Digest
from kabuild.model.result import OutputFile
from kabuild.model.verdict import GateVerdict
from kabuild.published.origin import Origins, origins
from kabuild.store.merkle import FileNode, build
from tests.testkit.bundles import RECORD

if TYPE_CHECKING:
    from collections.abc import Mapping

GATE = builtin_root() / "rules/harness/tools/gate.py"


def judged(
    inputs: Mapping[str, bytes],
    made: Mapping[str, bytes] | None = None,
    *,
    timed: bool = False,
    replayable: bool = True,
    argv: tuple[str, ...] = ("${toolchain:python}/bin/python3", "tools/gate.py", "spec.json"),
    env: Mapping[str, str] = BASE_ENV,
) -> Origins:
    """The origins of one record with these inputs, beside one that made some files.

    It runs our own judge, with the fingerprint of a toolchain, if the inputs have no other.
    """
    inputs = {"tools/gate.py": GATE.read_bytes(), **inputs}
    command = repeated_field(1, (argument.encode() for argument in argv))
    for pair in env.items():
        parts = (text_field(number, text) for number, text in enumerate(pair, 1))
        command += message_field(2, b"".join(parts))
    blobs: dict[Digest, bytes] = {Digest.of(data): data for data in (*inputs.values(), command)}
    root = build((path, FileNode(Digest.of(data))) for path, data in inputs.items())
    for directory in root.all_directories():
        blobs[directory.digest] = directory.wire
    outputs = tuple(OutputFile(path, Digest.of(data)) for path, data in (made or {}).items())
    record = replace(RECORD, gate="compile", mnemonic="Compile", root=root.digest, files=outputs)
    record = replace(record, timed=timed, replayable=replayable)
    record = replace(record, command=Digest.of(command), toolchains=("zig",))
    return origins([record], blobs.__getitem__)


def test_our_own_judge_is_recognised_by_its_bytes() -> None:
    found = judged({"tools/gate.py": GATE.read_bytes(), "task/reference.py": b"x"})
    assert (found.foreign, found.given) == ((), {"task/*.py": 1})


def test_a_judge_with_one_more_line_is_foreign() -> None:
    found = judged({"tools/gate.py": GATE.read_bytes() + b"# always PASS\n"})
    assert found.foreign == ("tools/gate.py",)


def test_compiled_code_counts_as_given_unless_an_action_made_it() -> None:
    inputs = {"candidate/kernel.so": b"code"}
    assert judged(inputs).given == {"candidate/*.so": 1}
    assert judged(inputs, {"kernel.so": b"code"}).given == {}


def test_kernels_that_no_replay_compiles_are_given() -> None:
    inputs, made = {"candidate/kernel.so": b"code"}, {"kernel.so": b"code"}
    assert judged(inputs, made, replayable=False).given == {"candidate/*.so": 1}
    assert judged(inputs, made, timed=True).given == {}, "only its JSON may differ"
    code = {"choice/compiled.json": b"{}"}, {"compiled.json": b"{}"}
    assert judged(*code, timed=True).given == {"choice/*.json": 1}
    assert judged(*code).given == {}


def test_a_verdict_of_a_gate_that_an_earlier_one_stopped_is_nobodys() -> None:
    skipped = GateVerdict.skipped("perf", "correctness: FAIL").to_json()
    assert judged({"verdicts/perf.json": skipped}).foreign == ()
    for path, data in (
        ("verdicts/unseen.json", skipped),
        ("verdicts/perf.json", skipped.replace(b"SKIPPED", b"PASS")),
        ("verdicts/perf.json", skipped.replace(b'"cases":[]', b'"cases":[{"speedup":9}]')),
        ("tools/perf.json", skipped),
    ):
        assert judged({path: data}).foreign == (path,)


def test_a_toolchains_fingerprint_is_none_of_it() -> None:
    found = judged({".kabuild/toolchains/zig.json": b"{}"})
    assert (found.foreign, found.given) == ((), {})


@pytest.mark.parametrize("name", ["judge.py", "zig.py", "other.json", "zig.json/judge.py"])
def test_other_files_among_fingerprints_are_foreign(name: str) -> None:
    path = f".kabuild/toolchains/{name}"
    assert judged({path: b"print('PASS')"}).foreign == (path,)


PYTHON = "${toolchain:python}/bin/python3"


@pytest.mark.parametrize(
    "argv",
    [
        (PYTHON, "-c", "print('PASS')"),
        (PYTHON, "task/judge.py", "tools/gate.py"),
        (PYTHON, ".kabuild/toolchains/zig.json"),
        (PYTHON, "-mjudge", "tools/gate.py"),
        (PYTHON, "tools/../task/judge.py"),
        ("/bin/sh", "tools/gate.py"),
        ("tools/gate.py", "tools/gate.py"),
        (PYTHON,),
        (),
    ],
)
def test_a_command_that_runs_no_file_of_the_judge_is_foreign(argv: tuple[str, ...]) -> None:
    inputs = {"task/judge.py": b"print('PASS')", ".kabuild/toolchains/zig.json": b"{}"}
    assert judged(inputs).foreign == ()
    assert judged(inputs, argv=argv).foreign == (" ".join([*argv, "", ""][:2]),)


def test_a_variable_that_no_rule_sets_is_foreign() -> None:
    """One loads other code, another slows a baseline; agents have variables of their own."""
    env = {**BASE_ENV, "PYTHONPATH": "candidate", "OMP_NUM_THREADS": "1"}
    assert judged({}, env=env).foreign == ("OMP_NUM_THREADS=1", "PYTHONPATH=candidate")
    assert judged({}, env={**BASE_ENV, "PYTHONHASHSEED": "1"}).foreign == ("PYTHONHASHSEED=1",)
    assert judged({}, env=env, replayable=False).foreign == ()


def test_paths_are_not_trusted() -> None:
    """A judge's file at another place is still known by its bytes, and by nothing else."""
    assert judged({"task/gate.py": GATE.read_bytes()}).given == {}
    assert judged({"tools/gate.py": b"another"}).foreign == ("tools/gate.py",)


@pytest.mark.parametrize(("timed", "replayable"), [(True, True), (False, False)])
def test_a_judge_that_an_action_only_claims_to_have_made_is_foreign(
    timed: bool, replayable: bool
) -> None:
    evil = {"tools/gate.py": b"print('PASS')"}
    made = {"x.py": b"print('PASS')"}
    found = judged(evil, made, timed=timed, replayable=replayable)
    assert found.foreign == ("tools/gate.py",)
    assert judged({"runner/hip-runner": b"elf"}, {"hip-runner": b"elf"}).foreign == ()


@pytest.mark.parametrize(
    "path", ["runner_host/main.cpp", "launch_filter_cuda/launch.cpp", "runtime/lib.so"]
)
def test_the_sources_of_a_runner_judge_as_well(path: str) -> None:
    assert judged({path: b"evil"}).foreign == (path,)


def test_a_verdict_that_no_gate_gave_is_foreign() -> None:
    said = b'{"verdict": "PASS"}'
    assert judged({"verdicts/perf.json": said}).foreign == ("verdicts/perf.json",)
    assert judged({"verdicts/perf.json": said}, {"verdict.json": said}, timed=True).foreign == ()
