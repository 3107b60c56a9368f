"""Records that claim something else than their actions do."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from kabuild.base.errors import BundleError
from kabuild.bundle.claims import check_claims, check_machine, check_outputs
from kabuild.bundle.manifest import Manifest, Record
from kabuild.model.action import VERDICT_FILE, Action
from kabuild.model.digest import Digest
from kabuild.model.label import Label
from kabuild.model.platform import Platform
from kabuild.model.result import OutputFile
from kabuild.store.merkle import Directory, FileNode, build

ACTION = Action(Label.parse("//a:b"), ("judge",), (), (VERDICT_FILE,), Platform("cpu"))
TASK = "//tasks/softmax"


def said(gate: str) -> bytes:
    """A verdict, or a specification."""
    return json.dumps({"schema": 1, "gate": gate, "verdict": "PASS"}).encode()


def record_of(gate: str, **changes: Any) -> Record:
    """The record of a gate of TASK, or of what has none."""
    files = (OutputFile(VERDICT_FILE, Digest.of(said(gate))),) if gate else ()
    known = Record(
        label=f"{TASK}:softmax.{gate or 'agent'}",
        task=TASK,
        gate=gate,
        mnemonic="Judge",
        key=Digest.of(b""),
        command=Digest.of(b""),
        root=Digest.of(b""),
        toolchains=(),
        preload=(),
        nestable=False,
        lease="",
        timed=False,
        cpus=1,
        replayable=True,
        files=files,
    )
    return replace(known, **changes)


def tree(files: dict[str, bytes]) -> Directory:
    return build((path, FileNode(Digest.of(data))) for path, data in files.items())


def check(record: Record, action: Action = ACTION, *, spec: str = "", verdict: str = "") -> None:
    """Check a record whose verdict and specification name these gates; by default its own."""
    files = {"spec.json": said(spec)} if spec else {}
    verdicts = {Digest.of(said(gate)): said(gate) for gate in (record.gate, spec, verdict, "perf")}
    if verdict:
        file = OutputFile(VERDICT_FILE, Digest.of(said(verdict)))
        record = replace(record, files=(file,))
    check_claims(record, action, tree(files), verdicts.__getitem__)


FALSE: dict[str, tuple[Record, dict[str, Any], str]] = {
    "another gate's label": (
        record_of("unseen", label=f"{TASK}:softmax.correctness"),
        {},
        "it is marked as gate unseen of //tasks/softmax",
    ),
    "another task's label": (
        record_of("perf", label="//tasks/gemm:gemm.perf"),
        {},
        "it is marked as gate perf of //tasks/softmax",
    ),
    "no task": (record_of("perf", task=""), {}, "it is marked as gate perf of no task"),
    "another gate's verdict": (
        record_of("unseen"),
        {"verdict": "perf"},
        "it is marked as gate unseen, but its verdict.json says 'perf'",
    ),
    "another gate's specification": (
        record_of("unseen"),
        {"spec": "perf"},
        "it is marked as gate unseen, but its spec.json says 'perf'",
    ),
    "an action without verdicts": (
        record_of("perf"),
        {"action": replace(ACTION, outputs=("kernel.so",))},
        "it is marked as gate perf, but writes no verdict.json",
    ),
    "a gate as none": (
        record_of("", label=f"{TASK}:softmax.perf"),
        {"verdict": "perf"},
        "it is gate 'perf', but marked as no gate",
    ),
    "a gate that no replay runs": (
        record_of("perf", replayable=False),
        {},
        "it is marked as not replayable, but uses neither a network nor secrets",
    ),
    "an agent that a replay runs": (
        record_of(""),
        {"action": replace(ACTION, network=True)},
        "it is marked as replayable, but uses a network or secrets",
    ),
}


@pytest.mark.parametrize(("record", "given", "why"), FALSE.values(), ids=FALSE)
def test_what_a_record_claims_is_compared_with_its_action(
    record: Record, given: dict[str, Any], why: str
) -> None:
    with pytest.raises(BundleError, match=f"is not what the bundle says: {why}\n"):
        check(record, **given)


@pytest.mark.parametrize(
    ("record", "given"),
    [
        (record_of("perf"), {"spec": "perf"}),
        (record_of("compile"), {}),
        (record_of("perf", label=f"{TASK}:softmax.perf#2"), {"spec": "perf"}),
        (record_of("", label=f"{TASK}:softmax.baseline.compile"), {"verdict": "compile"}),
        (record_of("", label=f"{TASK}:softmax.baseline"), {"verdict": "baseline"}),
        (record_of("", replayable=False), {"action": replace(ACTION, secrets=("TOKEN",))}),
        (record_of("", task="", label="//toolchains/hip:cpu.runner"), {}),
    ],
    ids=["judge", "compiler", "second trial", "baseline", "choice", "agent", "toolchain"],
)
def test_honest_records_are_read(record: Record, given: dict[str, Any]) -> None:
    check(record, **given)


H200 = {"name": "cuda", "arch": "sm_90", "device": "NVIDIA H200"}


def measured(
    machine: dict[str, str], *ran_on: tuple[str, str], speedup: float | None = 2.0
) -> None:
    """Check a gate that measured with such a key, in a bundle of ``machine``."""
    data = json.dumps({"cases": [{"config": "f32", "speedup": speedup}]}).encode()
    record = record_of("perf", files=(OutputFile(VERDICT_FILE, Digest.of(data)),))
    action = replace(ACTION, platform=Platform("cuda", ran_on))
    check_machine(record, action, machine, {Digest.of(data): data}.__getitem__)


def test_times_are_of_the_machine_that_the_bundle_names() -> None:
    arch, device = ("arch", "sm_90"), ("device", "NVIDIA H200")
    measured(H200, arch, device)
    measured({"name": "cpu"}, arch, device, speedup=None)
    for machine, ran_on in (
        ({**H200, "device": "NVIDIA B200"}, (arch, device)),
        ({**H200, "name": "cpu"}, (arch, device)),
        ({**H200, "power": "200 W"}, (arch, device)),
        (H200, (arch,)),
        ({"name": "cuda", "arch": "sm_90"}, (arch, device)),
    ):
        with pytest.raises(BundleError, match=r"its machine has .*, but the key has "):
            measured(machine, *ran_on)


def test_outputs_are_in_the_bundle_or_left_out_by_name() -> None:
    made = OutputFile("transcript.jsonl", Digest.of(b"x"))
    agent = record_of("", files=(made,))
    kept, held = {made.digest.hash: made.digest.size}, replace(agent, withheld=(made.path,))

    check_outputs(Manifest("1", {}, {}, (agent,), kept))
    check_outputs(Manifest("1", {}, {}, (held,), {}))
    with pytest.raises(BundleError, match=r"'transcript.jsonl' is not in the bundle"):
        check_outputs(Manifest("1", {}, {}, (agent,), {}))
    gate = record_of("perf", withheld=(VERDICT_FILE,))
    with pytest.raises(BundleError, match=r"its verdict.json is left out"):
        check_outputs(Manifest("1", {}, {}, (gate,), {}))
