"""Verdicts that gates hand on to others: those of the bundle, and no others."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kabuild.base.errors import BundleError
from kabuild.bundle.manifest import Manifest
from kabuild.bundle.verdicts import check_handed_on
from kabuild.model.digest import Digest
from kabuild.model.result import OutputFile
from kabuild.store.merkle import FileNode, build
from tests.testkit.bundles import RECORD

SAID = {"correctness": b"honest", "perf": b"1.0x"}


def check(read: dict[str, bytes], *, task: str = "//a:b") -> None:
    """Check a bundle whose score is made of what is ``read``, below ``verdicts/``."""
    gates = [
        replace(
            RECORD,
            label=f"{task}.{gate}",
            task=task,
            gate=gate,
            files=(OutputFile("verdict.json", Digest.of(said)),),
        )
        for gate, said in SAID.items()
    ]
    inputs = {f"verdicts/{name}": data for name, data in read.items()} | {"spec.json": b"{}"}
    root = build((path, FileNode(Digest.of(data))) for path, data in inputs.items())
    score = replace(RECORD, label="//a:b.score", gate="score", root=root.digest)
    manifest = Manifest("1", {}, {}, (*gates, score), {})
    check_handed_on(manifest, {RECORD.root: build(()), root.digest: root})


@pytest.mark.parametrize("name", SAID)
def test_a_score_of_another_verdict_than_the_gates_is_refused(name: str) -> None:
    """It would be reproduced to the byte, and so would what the gates themselves said."""
    with pytest.raises(BundleError, match=f"verdicts/{name}.json is not the verdict of that gate"):
        check({f"{gate}.json": said for gate, said in SAID.items()} | {f"{name}.json": b"9.0x"})


def test_a_score_of_the_gates_own_verdicts_is_read() -> None:
    check({f"{gate}.json": said for gate, said in SAID.items()})
    check({"perf.json": b"other"}, task="//a:other")
    check({"notes.txt": b"none"})
