"""Errors say one thing clearly, and say where."""

from __future__ import annotations

import inspect

import pytest

from kabuild.base import errors
from kabuild.base.errors import (
    AnalysisError,
    ExitCode,
    InternalError,
    KabuildError,
    LoadError,
    LoadErrors,
    Position,
    Reason,
    ToolchainError,
    UsageError,
)


@pytest.mark.parametrize(
    ("position", "text"),
    [
        (Position("a/BUILD.toml"), "a/BUILD.toml"),
        (Position("a/BUILD.toml", 7), "a/BUILD.toml:7"),
        (Position("a/BUILD.toml", 7, 3), "a/BUILD.toml:7:3"),
    ],
)
def test_positions_print_as_editors_read_them(position: Position, text: str) -> None:
    assert str(position) == text


def test_an_error_prints_position_message_and_indented_hint() -> None:
    error = LoadError(
        Reason.UNKNOWN_TARGET,
        "no target ':sofmax'",
        position=Position("a/BUILD.toml", 7),
        hint="did you mean ':softmax'?\nor another one",
    )
    assert str(error) == (
        "a/BUILD.toml:7: no target ':sofmax'\n  did you mean ':softmax'?\n  or another one"
    )


def test_an_error_without_position_and_hint_is_its_message() -> None:
    assert str(UsageError(Reason.BAD_FLAG, "no")) == "no"


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (UsageError, ExitCode.COMMAND_LINE),
        (LoadError, ExitCode.BUILD_FAILED),
        (AnalysisError, ExitCode.BUILD_FAILED),
        (ToolchainError, ExitCode.ENVIRONMENT),
        (InternalError, ExitCode.INTERNAL),
    ],
)
def test_exit_codes(kind: type[KabuildError], code: ExitCode) -> None:
    assert kind.exit_code is code


def test_the_tree_at_the_top_of_the_module_is_complete() -> None:
    """Every error class is drawn in the docstring, at its place."""
    drawn = [line for line in (errors.__doc__ or "").splitlines() if "Error" in line]
    classes = [
        item
        for _, item in inspect.getmembers(errors, inspect.isclass)
        if issubclass(item, KabuildError)
    ]
    for item in classes:
        line = next(
            line
            for line in drawn + (errors.__doc__ or "").splitlines()
            if line.lstrip("│├└─ ").split(" ")[0] == item.__name__
        )
        depth = len(item.__mro__) - len(KabuildError.__mro__)
        assert len(line) - len(line.lstrip("│├└─ ")) == 4 * depth, item


def _error(line: int) -> LoadError:
    return LoadError(Reason.BAD_ATTRIBUTE, f"problem {line}", position=Position("f", line))


def test_one_of_several_errors_stays_itself() -> None:
    error = _error(1)
    assert LoadErrors.combine([error]) is error


def test_several_errors_print_one_after_the_other_and_flatten() -> None:
    both = LoadErrors.combine([_error(1), LoadErrors([_error(2), _error(3)])])
    assert isinstance(both, LoadErrors)
    assert [str(part) for part in both.errors] == str(both).splitlines()
    assert str(both) == "f:1: problem 1\nf:2: problem 2\nf:3: problem 3"
    assert (both.reason, both.position) == (Reason.BAD_ATTRIBUTE, Position("f", 1))
