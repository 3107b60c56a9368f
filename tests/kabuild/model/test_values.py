"""Actions, digests, platforms, targets, toolchains and verdicts as values."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kabuild.base.errors import Position
from kabuild.model.action import Action, Output, Resources, Source, Toolchain
from kabuild.model.digest import EMPTY, Digest
from kabuild.model.label import Label
from kabuild.model.platform import Platform
from kabuild.model.result import ActionResult, OutputFile
from kabuild.model.target import Target
from kabuild.model.verdict import GateVerdict, Verdict

ACTION = Action(
    label=Label("p", "a"),
    argv=("cc",),
    inputs=(("b", Source("b")), ("a", Source("a"))),
    outputs=("bin", "tree"),
    platform=Platform("cpu", (("os", "linux"), ("arch", "x86_64"))),
    env=(("B", "2"), ("A", "1")),
)


def test_inputs_env_and_properties_are_sorted() -> None:
    assert [path for path, _ in ACTION.inputs] == ["a", "b"]
    assert ACTION.env == (("A", "1"), ("B", "2"))
    assert ACTION.platform.properties == (("arch", "x86_64"), ("os", "linux"))


@pytest.mark.parametrize(
    "change",
    [
        {"mnemonic": "Other"},
        {"gate": "perf"},
        {"requires": (Label("p", "x"),)},
        {"resources": Resources(cpus=0, lease="cpu")},
        {"preload": ("torch",)},
    ],
)
def test_display_and_scheduling_are_no_part_of_what_an_action_is(change: dict[str, object]) -> None:
    assert replace(ACTION, **change) == ACTION  # type: ignore[arg-type]


def test_outputs_and_paths_below_them_are_artifacts() -> None:
    assert ACTION.output("bin") == Output("//p:a", "bin")
    assert ACTION.output("tree/x/y") == Output("//p:a", "tree/x/y")
    for path in ("bi", "tree2/x", "out"):
        with pytest.raises(ValueError, match="declares no output"):
            ACTION.output(path)


@pytest.mark.parametrize("mnemonic", ["", "Launch filter", "a/b", "\x1b[1m"])
def test_a_mnemonic_is_one_word(mnemonic: str) -> None:
    with pytest.raises(ValueError, match="one word was expected"):
        replace(ACTION, mnemonic=mnemonic)


@given(st.binary(max_size=2000))
def test_digests_survive_the_wire(data: bytes) -> None:
    digest = Digest.of(data)
    assert Digest.from_wire(digest.to_wire()) == digest
    assert str(digest) == f"{digest.hash}/{len(data)}"


def test_the_empty_digest_is_that_of_sha256() -> None:
    assert EMPTY.hash.startswith("e3b0c442")
    assert Digest.from_wire(EMPTY.to_wire()) == EMPTY


@pytest.mark.parametrize(("hash_", "size"), [("", 0), ("A" * 64, 0), ("a" * 63, 1), ("a" * 64, -1)])
def test_what_is_no_digest(hash_: str, size: int) -> None:
    with pytest.raises(ValueError, match="not a digest"):
        Digest(hash_, size)


@pytest.mark.parametrize("data", [b"", b"\x08\x01", b"\x0a\x01\xff", b"\x12\x00"])
def test_messages_that_hold_no_digest(data: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        Digest.from_wire(data)


def test_platforms() -> None:
    platform = Platform("cpu", (("arch", "x86_64"),))
    assert str(platform) == "cpu:x86_64"
    assert str(Platform("cpu")) == "cpu"
    assert platform.get("arch") == "x86_64"
    assert platform.get("driver", "none") == "none"
    unsorted = Platform("cpu", (("memory", "8"), ("arch", "arm64")))
    assert unsorted.properties == (("arch", "arm64"), ("memory", "8"))


def test_a_target_names_its_subtargets() -> None:
    target = Target(Label("p", "t"), "task", {}, Position("p/BUILD.toml", 1), ("perf",))
    assert target.labels() == (Label("p", "t"), Label("p", "t.perf"))


def test_where_a_toolchain_lies_is_no_part_of_what_it_is() -> None:
    here = Toolchain("zig", "compiler", b"{}", home="/a", mounts=("/a",))
    assert here == replace(here, home="/b", mounts=("/b",))
    assert here != replace(here, fingerprint=b"[]")


def test_output_directories_are_found_by_their_files() -> None:
    file = OutputFile("tree/x", EMPTY)
    result = ActionResult(0, (file, OutputFile("treelike", EMPTY)))
    assert result.below("tree") == (("x", file),)
    assert result.file("tree/x") == file
    assert result.file("tree") is None


def test_verdicts_read_back() -> None:
    verdict = GateVerdict("perf", Verdict.FAIL, "TIMEOUT", "too slow", data={"cases": [1]})
    read = GateVerdict.from_json(verdict.to_json())
    assert read == verdict
    assert read.data["cases"] == [1]
    assert GateVerdict.skipped("perf", "compile failed").reason == "EARLIER_GATE"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b'{"schema":2,"verdict":"PASS"}',
        b'{"schema":1,"verdict":"MAYBE"}',
        b'{"schema":1}',
        b'{"schema":1,"verdict":"PASS","reason":3}',
    ],
)
def test_what_is_no_verdict(data: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        GateVerdict.from_json(data)
