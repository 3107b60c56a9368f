"""A reason and the name of a gate are written once: in ``tools/terms``. Others refer to them."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from terms import gates
from terms.reasons import Reason

from kabuild.model.verdict import EARLIER_GATE
from tests.testkit.own_tasks import ROOT

TERMS = ROOT / "rules/harness/tools/terms"
REASONS = frozenset(reason.value for reason in Reason)
GATES = frozenset(
    (*gates.SCORED, gates.SCORE, gates.RETENTION, gates.SANITIZE, gates.ADMISSION, "analyze")
)

SAID_ELSEWHERE: Mapping[str, set[str]] = {
    # kabuild skips gates itself, and knows none of its rules.
    "kabuild/model/verdict.py": {"EARLIER_GATE"},
    # An agent reads verdicts from outside, and has none of the judge's files.
    "toolchains/agents/evolve/soft.py": {
        *("OUT_OF_BOUNDS", "CRASH", "INPUT_MUTATED", "INCOMPLETE_OUTPUT", "LAUNCH_ERROR"),
        *("WRONG_RESULT", "NON_FINITE", "NONDETERMINISTIC"),
    },
}
"""Where the judge's terms cannot be imported: what is said there."""


def said(text: str, words: frozenset[str]) -> Iterator[tuple[int, str]]:
    """The lines of a module on which one of ``words`` is a string, and which."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in words:
            yield node.lineno, node.value


@cache
def modules() -> Mapping[Path, str]:
    """The text of all that ships, without the terms."""
    files = (
        file for top in ("kabuild", "rules", "toolchains") for file in ROOT.glob(f"{top}/**/*.py")
    )
    return {file: file.read_text() for file in files if file.parent != TERMS}


def test_no_reason_is_written_twice() -> None:
    found = defaultdict(set)
    for file, text in modules().items():
        for _, word in said(text, REASONS):
            found[str(file.relative_to(ROOT))].add(word)

    assert found == SAID_ELSEWHERE


def test_a_reason_that_is_written_twice_is_found() -> None:
    text = '"""WRONG_RESULT stands in a docstring."""\nraise Refusal("WRONG_RESULT", f"{name}")\n'
    assert list(said(text, REASONS)) == [(2, "WRONG_RESULT")]


def test_kabuild_and_the_judge_skip_gates_for_one_reason() -> None:
    assert Reason.EARLIER_GATE.value == EARLIER_GATE


def test_rules_name_gates_by_the_terms() -> None:
    """A string may name an attribute or a package that is called as a gate, but not the gate."""
    found = []
    for file, text in modules().items():
        if file.is_relative_to(ROOT / "rules") and "tools" not in file.parts:
            for node in ast.walk(ast.parse(text)):
                found += [f"{file}:{line}" for line in gate_names(node)]

    assert found == []


def gate_names(node: ast.AST) -> Iterator[int]:
    """The lines where a gate is declared or compared by a string."""
    match node:
        case ast.Call(func=ast.Name(id="Gate") | ast.Attribute(attr="gate"), args=[first, *_]):
            terms = [first]
        case ast.Call(func=ast.Name(id=name), args=args) if name.endswith("compile"):
            terms = args
        case ast.Compare(left=left, comparators=others):
            terms = [left, *others]
        case _:
            return
    for term in terms:
        if isinstance(term, ast.Constant) and term.value in GATES:
            yield term.lineno


def test_a_gate_that_is_named_by_a_string_is_found() -> None:
    text = 'GATES = (Gate("perf"), Gate(gates.PERF))\nctx.gate("unseen")\npart == "compile"\n'
    text += 'declare_compile(ctx, "compile", kernel)\nattrs["correctness"]\n'
    found = [line for node in ast.walk(ast.parse(text)) for line in gate_names(node)]

    assert sorted(found) == [1, 2, 3, 4]
