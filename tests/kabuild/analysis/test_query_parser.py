"""The text of queries."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kabuild.analysis.query_parser import Binary, Call, Expression, Word, parse_query
from kabuild.base.errors import Reason, UsageError


def show(tree: Expression) -> str:
    """A tree with all its brackets."""
    if isinstance(tree, Word):
        return tree.text
    if isinstance(tree, Call):
        return f"{tree.function}[{', '.join(map(show, tree.arguments))}]"
    return f"({show(tree.left)} {tree.operator} {show(tree.right)})"


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("//a/...", "//a/..."),
        (":all", ":all"),
        ("a-b", "a-b"),
        ("'//a + b'", "//a + b"),
        ('"deps"', "deps"),
        ("deps", "deps"),
        ("//a + //b - //c", "((//a + //b) - //c)"),
        ("//a union //b except //c intersect //d", "(((//a + //b) - //c) ^ //d)"),
        ("//a-//b", "//a-//b"),
        ("//a -//b", "(//a - //b)"),
        ("//a+//b^//c", "((//a + //b) ^ //c)"),
        ("//a - (//b + //c)", "(//a - (//b + //c))"),
        ("((//a))", "//a"),
        ("deps(//a)", "deps[//a]"),
        ("deps( //a , 2 )", "deps[//a, 2]"),
        ("rdeps(//..., //a + //b, 1)", "rdeps[//..., (//a + //b), 1]"),
        ("kind('hip2hip|gate', //a)", "kind[hip2hip|gate, //a]"),
        ("attr(tags, '(x)', deps(//a))", "attr[tags, (x), deps[//a]]"),
        ("tests(filter(soft, //...)) - //a", "(tests[filter[soft, //...]] - //a)"),
        ("somepath(//a, //b) + allpaths(//a, //b)", "(somepath[//a, //b] + allpaths[//a, //b])"),
        ("//a\n  + //b\n", "(//a + //b)"),
    ],
)
def test_trees(text: str, tree: str) -> None:
    assert show(parse_query(text)) == tree


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("", 0, "expected a pattern or a function, found the end"),
        ("//a +", 5, "expected a pattern or a function, found the end"),
        ("//a + - //b", 6, "expected a pattern or a function, found '-'"),
        ("union //a", 0, "expected a pattern or a function, found 'union'"),
        ("//a //b", 4, "'//b' follows a complete expression"),
        ("//a)", 3, "')' follows a complete expression"),
        ("(//a", 4, "expected ')', found the end"),
        ("(//a //b)", 5, "expected ')', found '//b'"),
        ("deps(//a", 8, "expected ')' after the arguments of deps"),
        ("deps(//a, //b)", 10, "'//b' is not a depth"),
        ("deps(//a, 1, 2)", 11, "expected ')' after the arguments of deps"),
        ("deps()", 5, "expected a pattern or a function, found ')'"),
        ("kind(x)", 6, "an argument is missing"),
        ("kind('(', //a)", 6, "'(' is not a valid regular expression: missing )"),
        ("kind((x), //a)", 5, "expected a regex, found '('"),
        ("dep(//a)", 0, "no function 'dep'"),
        ("//a + 'b", 6, "a quote is not closed"),
        ("//a + -b", 6, "'-' needs a blank after it"),
    ],
)
def test_mistakes_have_a_caret(text: str, column: int, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_query(text)
    assert caught.value.reason is Reason.BAD_QUERY
    assert message in caught.value.message
    shown, caret = caught.value.hint.split("\n")[:2]
    assert shown == text
    assert caret == " " * column + "^"


def test_unknown_functions_are_suggested() -> None:
    with pytest.raises(UsageError) as caught:
        parse_query("rdep(//a)")
    assert caught.value.hint.endswith("did you mean 'rdeps'?")
    with pytest.raises(UsageError) as caught:
        parse_query("zzz(//a)")
    assert "functions: deps, rdeps" in caught.value.hint


@given(st.text("ad(),+-^'\" /.:\n", max_size=20) | st.text(max_size=12))
def test_any_text_is_a_tree_or_one_clear_error(text: str) -> None:
    try:
        assert isinstance(parse_query(text), Word | Call | Binary)
    except UsageError:
        with pytest.raises(UsageError, match=r"^bad query: ") as caught:
            parse_query(text)
        assert caught.value.reason is Reason.BAD_QUERY
