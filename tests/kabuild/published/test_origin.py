"""Whose code judged."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from kabuild.loading import builtin_root
from kabuild.model.digest import Digest
from kabuild.model.result import OutputFile
from kabuild.published.origin import Origins, origins
from kabuild.store.merkle import FileNode, build
from tests.testkit.bundles import RECORD

if TYPE_CHECKING:
    from collections.abc import Mapping

GATE = builtin_root() / "rules/harness/tools/gate.py"


def judged(inputs: Mapping[str, bytes], made: Mapping[str, bytes] | None = None) -> Origins:
    """The origins of one record with these inputs, beside one that made some files."""
    blobs: dict[Digest, bytes] = {Digest.of(data): data for data in inputs.values()}
    root = build((path, FileNode(Digest.of(data))) for path, data in inputs.items())
    for directory in root.all_directories():
        blobs[directory.digest] = directory.wire
    outputs = tuple(OutputFile(path, Digest.of(data)) for path, data in (made or {}).items())
    record = replace(RECORD, gate="compile", mnemonic="Compile", root=root.digest, files=outputs)
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


def test_a_toolchains_fingerprint_is_none_of_it() -> None:
    assert judged({".kabuild/toolchains/zig.json": b"{}"}).given == {}


def test_paths_are_not_trusted() -> None:
    """A judge's file at another place is still known by its bytes, and by nothing else."""
    assert judged({"task/gate.py": GATE.read_bytes()}).given == {}
    assert judged({"tools/gate.py": b"another"}).foreign == ("tools/gate.py",)
