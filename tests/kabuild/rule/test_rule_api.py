"""The public API for rules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

import kabuild.rule
from kabuild.base.errors import AnalysisError, Position, Reason
from kabuild.model.options import Options
from kabuild.model.platform import Platform
from kabuild.model.target import Target
from kabuild.rule import (
    VERDICT_FILE,
    AttributeProblem,
    Context,
    Label,
    Literal,
    Provider,
    Source,
    Toolchain,
    attr,
)

ZIG = Toolchain("zig", "compiler", b"{}", home="/zig")


@dataclass(frozen=True)
class Colour(Provider):
    name: str


@dataclass(frozen=True)
class Size(Provider):
    millimetres: int


def make_context(**attrs: Any) -> Context:
    label = Label("a/b", "b")
    target = Target(label, "toy", attrs, Position("a/b/BUILD.toml", 3), ("perf",))
    provided: dict[Label, dict[type[Provider], Provider]] = {
        Label("a", "dep"): {Colour: Colour("red")}
    }
    return Context(
        target,
        Options(Platform("cpu"), Label("agents", "none")),
        providers=lambda label: provided.get(label, {}),
        toolchains=lambda label, _: (
            ZIG if label == Label("t/zig", "zig") else pytest.fail(str(label))
        ),
        toolchains_here=lambda label: ZIG if label == Label("t/zig", "zig") else None,
    )


def test_everything_exported_exists() -> None:
    assert len(set(kabuild.rule.__all__)) == len(kabuild.rule.__all__)
    assert all(hasattr(kabuild.rule, name) for name in kabuild.rule.__all__)


def test_actions_bear_the_labels_of_subtargets() -> None:
    ctx = make_context()
    whole = ctx.action("", argv=("x",), inputs={}, outputs=("o",), mnemonic="X")
    part = ctx.action(
        "perf", argv=("x",), inputs={}, outputs=("o",), mnemonic="X", requires=(whole,)
    )
    assert (str(whole.label), str(part.label)) == ("//a/b:b", "//a/b:b.perf")
    assert part.requires == (whole.label,)
    assert part.platform == Platform("cpu")
    assert ctx.actions == [whole, part]


def test_gates_write_a_verdict() -> None:
    gate = make_context().gate(
        "perf", argv=("x",), inputs={}, outputs=("samples.json",), mnemonic="Perf"
    )
    assert gate.outputs == (VERDICT_FILE, "samples.json")
    assert gate.gate == "perf"


def test_providers_reach_those_that_depend() -> None:
    ctx = make_context()
    assert ctx.provider(Label("a", "dep"), Colour) == Colour("red")
    ctx.provide(Size(3))
    assert ctx.provided == {Size: Size(3)}


@pytest.mark.parametrize("label", [Label("a", "dep"), Label("a", "stranger")])
def test_a_missing_provider_is_an_error_at_the_target(label: Label) -> None:
    with pytest.raises(
        AnalysisError, match=r"//a:\w+ does not provide Size, which //a/b needs"
    ) as e:
        make_context().provider(label, Size)
    assert e.value.reason is Reason.NO_PROVIDER
    assert e.value.position == Position("a/b/BUILD.toml", 3)


def test_files_toolchains_and_literals() -> None:
    ctx = make_context()
    assert ctx.toolchain("//t/zig") is ZIG
    assert ctx.toolchain(Label("t/zig", "zig")) is ZIG
    assert ctx.builtin("rules/x") == Source("rules/x", "builtin")
    assert ctx.package_file("f") == Source("a/b/f")
    assert ctx.literal({"b": 1, "a": 2}) == Literal(b'{"a":2,"b":1}\n')


def test_optional_attributes_have_the_defaults_of_their_type() -> None:
    assert attr.string("d").default is None
    assert attr.label("d").default is None
    assert attr.boolean("d").default is False
    assert attr.table("d").default == {}
    assert attr.strings("d").default == attr.labels("d").default == ()
    assert attr.string("d", values=("a", "b")).values == ("a", "b")


def test_problems_carry_path_hint_and_reason() -> None:
    problem = AttributeProblem("no", ("dims", 1), "do", reason=Reason.MISSING_FILE)
    assert (problem.path, problem.hint, problem.reason) == (("dims", 1), "do", Reason.MISSING_FILE)
    assert AttributeProblem("no").reason is Reason.BAD_ATTRIBUTE
