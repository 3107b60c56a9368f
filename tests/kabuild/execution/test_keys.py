"""What is in a key, what is not, and that none changes by accident."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kabuild.execution import Inputs, Prepared, prepare
from kabuild.model.action import Action, Limits, Literal, Output, Resources, Toolchain
from kabuild.model.digest import Digest
from kabuild.model.label import Label
from kabuild.model.platform import Platform
from kabuild.model.result import ActionResult, OutputFile
from tests.testkit import golden
from tests.testkit.actions import command, gate
from tests.testkit.index import NoIndex
from tests.testkit.reapi import parse

ZIG = Toolchain("zig", "hip-compiler", b'{"version":"0.17.0"}\n', home="/opt/zig")
PRODUCED = {"//t:c": ActionResult(0, (OutputFile("k.so", Digest.of(b"binary"), executable=True),))}


def key_of(action: Action, *, hermetic: bool = True) -> Prepared:
    root = Inputs({}, NoIndex()).root(action, PRODUCED)
    return prepare(action, root, hermetic=hermetic)


@pytest.fixture
def action() -> Action:
    return gate(
        "softmax.correctness",
        "${toolchain:zig}/zig",
        "cc",
        inputs={"a.c": Literal(b"int main;"), "bin/k.so": Output("//t:c", "k.so")},
        env={"CACHE": "/tmp/zig"},
        toolchains=[ZIG],
    )


EXAMPLES = {
    "plain": command("plain", "true", inputs={}, outputs=()),
    "compile": gate(
        "softmax.compile",
        "${toolchain:python}/bin/python",
        "tools/hipcpu.py",
        "kernel",
        inputs={"src/softmax.hip": Literal(b"kernel"), "tools/hipcpu.py": Literal(b"driver")},
        outputs=("softmax.so",),
        env={"LC_ALL": "C"},
        toolchains=[ZIG, Toolchain("python", "python", b"{}\n", home="/usr")],
        limits=Limits(timeout=30.5, memory=1 << 30, processes=64, scratch=1 << 28),
        platform=Platform("cuda", (("arch", "sm_90"), ("driver", "570.1"))),
    ),
    "names": command("names", inputs={"\u00e4/\U0001f600": Literal(b""), "B": Literal(b"\0")}),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_keys_change_only_by_decision(name: str) -> None:
    """A changed key reruns everything everywhere: accept it knowingly, and say so."""
    prepared = key_of(EXAMPLES[name])
    golden.check(
        f"keys/{name}",
        {
            "key": str(prepared.key),
            "command": str(Digest.of(prepared.command)),
            "input_root": str(prepared.root.digest),
            "files": {path: str(node.digest) for path, node in prepared.root.walk()},
        },
    )


def test_the_messages_say_all_of_the_action(action: Action) -> None:
    prepared = key_of(action)

    message, read = parse("Action", prepared.message), parse("Command", prepared.command)

    assert list(read.arguments) == ["${toolchain:zig}/zig", "cc"], (
        "tokens, not this machine's paths"
    )
    env = {variable.name: variable.value for variable in read.environment_variables}
    assert env["CACHE"] == "/tmp/zig"
    assert env["PYTHONHASHSEED"] == "0"
    assert list(read.output_paths) == ["out/verdict.json"]
    assert message.command_digest.hash == Digest.of(prepared.command).hash
    assert message.input_root_digest.hash == prepared.root.digest.hash
    assert message.timeout.seconds == action.limits.timeout
    properties = {p.name: p.value for p in message.platform.properties}
    assert properties == {
        "platform": "cpu",
        "platform.arch": "x86_64",
        "limits.memory": str(8 << 30),
        "limits.processes": "256",
        "limits.scratch": str(1 << 30),
    }


IN_THE_KEY = {
    "argv": {"argv": ("zig", "c++")},
    "env": {"env": (("CACHE", "/other"),)},
    "an override of the base environment": {"env": (("CACHE", "/tmp/zig"), ("TZ", "CET"))},
    "an input": {"inputs": (("a.c", Literal(b"int main")),)},
    "a path": {"inputs": (("b.c", Literal(b"int main;")), ("bin/k.so", Output("//t:c", "k.so")))},
    "outputs": {"outputs": ("verdict.json", "log")},
    "platform": {"platform": Platform("cuda")},
    "a platform property": {"platform": Platform("cpu", (("arch", "aarch64"),))},
    "a fingerprint": {"toolchains": (replace(ZIG, fingerprint=b"{}\n"),)},
    "a toolchain's name": {"toolchains": (replace(ZIG, name="cc"),)},
    "timeout": {"limits": Limits(timeout=121.0)},
    "memory": {"limits": Limits(memory=1 << 30)},
    "processes": {"limits": Limits(processes=8)},
    "scratch": {"limits": Limits(scratch=1 << 20)},
}
OUTSIDE_THE_KEY = {
    "label": {"label": Label("other", "x")},
    "mnemonic": {"mnemonic": "Renamed"},
    "gate": {"gate": "perf"},
    "requires": {"requires": (Label("t", "c"),)},
    "resources": {"resources": Resources(0, "gpu")},
    "preload": {"preload": ("torch",)},
    "nestable": {"nestable": True},
    "sandboxed": {"sandboxed": True},
    "a toolchain's home": {"toolchains": (replace(ZIG, home="/x", mounts=("/x",)),)},
}


@pytest.mark.parametrize("name", IN_THE_KEY)
def test_what_can_change_the_result_changes_the_key(action: Action, name: str) -> None:
    changed = replace(action, **IN_THE_KEY[name])  # type: ignore[arg-type]
    assert key_of(changed).key != key_of(action).key


@pytest.mark.parametrize("name", OUTSIDE_THE_KEY)
def test_what_cannot_change_the_result_keeps_the_key(action: Action, name: str) -> None:
    changed = replace(action, **OUTSIDE_THE_KEY[name])  # type: ignore[arg-type]
    assert key_of(changed).key == key_of(action).key


def test_results_without_a_sandbox_have_keys_of_their_own(action: Action) -> None:
    assert key_of(action, hermetic=False).key != key_of(action).key
