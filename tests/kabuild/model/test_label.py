"""Labels and patterns."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kabuild.base.errors import Reason, UsageError
from kabuild.model.label import Label, Pattern, names_package, repository_of

word = st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9_.+=-]{0,6}", fullmatch=True)
package = st.lists(word, max_size=3).map("/".join)
label = st.builds(Label, package, word)


@given(label)
def test_a_label_reads_back_in_both_its_forms(value: Label) -> None:
    assert Label.parse(str(value)) == value
    assert Label.parse(value.short) == value


@given(label, package)
def test_relative_labels_are_in_the_given_package(value: Label, other: str) -> None:
    assert Label.parse(f":{value.name}", package=value.package) == value
    assert Label.parse(str(value), package=other) == value


@given(st.text(max_size=12))
def test_any_text_is_a_label_or_one_clear_error(text: str) -> None:
    try:
        value = Label.parse(text, package="p")
    except UsageError:
        with pytest.raises(UsageError, match=r"is not a valid label|is no label") as caught:
            Label.parse(text, package="p")
        assert caught.value.reason is Reason.BAD_LABEL
        assert text in caught.value.message
    else:
        assert Label.parse(str(value)) == value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("//a/b:c", "//a/b:c"),
        ("//a/b", "//a/b:b"),
        ("b", "//p/b:b"),
        ("b/c:d", "//p/b/c:d"),
        (":d.perf", "//p:d.perf"),
        ("//:root", "//:root"),
    ],
)
def test_forms(text: str, expected: str) -> None:
    assert str(Label.parse(text, package="p")) == expected


@pytest.mark.parametrize(
    "text", ["", "//", "//a b", "//a:", "//a/../b", "/a", "//a//b", ":", "//a:b:c", "//a:../b"]
)
def test_bad_labels(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        Label.parse(text, package="p")
    assert caught.value.reason is Reason.BAD_LABEL
    assert caught.value.hint


def test_a_relative_label_needs_a_package() -> None:
    with pytest.raises(UsageError, match="starts with '//'"):
        Label.parse(":a")


@pytest.mark.parametrize(
    ("text", "package", "short"),
    [
        ("@kb//a/b:b", "@kb/a/b", "@kb//a/b"),
        ("@kb//a/b:b.perf#2", "@kb/a/b", "@kb//a/b:b.perf#2"),
        ("@kb//:x", "@kb", "@kb//:x"),
    ],
)
def test_a_label_may_be_in_an_external_repository(text: str, package: str, short: str) -> None:
    label = Label.parse(text)

    assert (label.package, label.short, str(label)) == (package, short, text)
    assert repository_of(label.package) == "kb"
    assert Label.parse(":c", package=label.package).package == package
    assert Label.parse("//a/b", package=label.package) == Label("a/b", "b")
    assert not Pattern.parse("//...").covers(label)
    assert Pattern.parse("@kb//...").covers(label)
    assert not Pattern.parse("@kbx//...").covers(label)


@pytest.mark.parametrize("text", ["@", "@kb", "@kb/a", "@Kb//a", "@//a", "//@kb/a", "@a@b//c"])
def test_labels_of_no_repository(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        Label.parse(text, package="p")
    assert caught.value.reason is Reason.BAD_LABEL
    assert not names_package(text)


@pytest.mark.parametrize("text", ["kb//a/b", "kb//a/b:b.perf", "-kb//a/...", "kb//..."])
def test_a_repository_without_its_mark_is_told_to_have_one(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        Pattern.parse(text, package="p")
    assert caught.value.reason is Reason.BAD_LABEL
    assert caught.value.hint.endswith(f"begins with '@': @{text.lstrip('-')}")


def test_a_label_that_is_not_valid_is_named_once() -> None:
    with pytest.raises(UsageError) as caught:
        Label.parse("a b", package="")
    assert caught.value.message == "'a b' is not a valid label: it is not a valid package path"


def test_subtargets_and_siblings() -> None:
    softmax = Label("a/softmax", "softmax")
    assert softmax.sub("perf") == Label.parse("//a/softmax:softmax.perf")
    assert softmax.sibling("gelu") == Label.parse("//a/softmax:gelu")


@pytest.mark.parametrize(
    ("pattern", "covered", "not_covered"),
    [
        ("//...", ["//a:a", "//:x", "//a/b:c.perf"], []),
        ("//a/...", ["//a:x", "//a/b:c"], ["//ab:x", "//:a"]),
        ("//a:all", ["//a:x", "//a:y.perf"], ["//a/b:c"]),
        ("//a:*", ["//a:x"], ["//a/b:c"]),
        ("//a:x", ["//a:x", "//a:x.perf"], ["//a:xy", "//b:x"]),
        ("-//a/...", ["//a:x"], ["//b:x"]),
        ("...", ["//p:x", "//p/q:y"], ["//a:x"]),
        ("q/...", ["//p/q:x"], ["//p:x"]),
        (":all", ["//p:x"], ["//p/q:x"]),
        (":x", ["//p:x"], ["//p:y"]),
    ],
)
def test_what_patterns_cover(pattern: str, covered: list[str], not_covered: list[str]) -> None:
    parsed = Pattern.parse(pattern, package="p")
    assert parsed.negative is pattern.startswith("-")
    assert str(parsed) == pattern
    assert all(parsed.covers(Label.parse(text)) for text in covered)
    assert not any(parsed.covers(Label.parse(text)) for text in not_covered)


@given(label)
def test_the_pattern_of_everything_covers_everything(value: Label) -> None:
    assert Pattern.parse("//...").covers(value)
    assert Pattern.parse(f"//{value.package}:all").covers(value)
    assert Pattern.parse(str(value)).covers(value) or value.name == "all"


@pytest.mark.parametrize(
    "text", ["@x/...", "-@x/a", "//a b/...", "/a/...", "//a:*.", "//a/...:b", "//a:*x"]
)
def test_bad_patterns(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        Pattern.parse(text)
    assert caught.value.reason is Reason.BAD_LABEL


@pytest.mark.parametrize(
    ("text", "name", "trial", "short"),
    [
        ("//a/b", "b", 1, "//a/b"),
        ("//a/b#2", "b#2", 2, "//a/b#2"),
        ("//a/b:b.perf#12", "b.perf#12", 12, "//a/b:b.perf#12"),
    ],
)
def test_a_label_may_have_the_number_of_a_trial(
    text: str, name: str, trial: int, short: str
) -> None:
    label = Label.parse(text)

    assert (label.name, label.trial, label.short) == (name, trial, short)
    assert Label.parse(label.short) == label
    assert label.in_trial(1).trial == 1
    assert label.in_trial(3).name == f"{name.partition('#')[0]}#3"


@pytest.mark.parametrize("text", ["//a/b#0", "//a/b#", "//a/b#x", "//a#2/b", "//a/b:b#2.perf"])
def test_what_is_no_number_of_a_trial_is_refused(text: str) -> None:
    with pytest.raises(UsageError) as raised:
        Label.parse(text)

    assert raised.value.reason is Reason.BAD_LABEL


def test_a_plain_label_covers_all_its_trials_and_a_numbered_one_its_own() -> None:
    first, second = Label.parse("//a:b.perf"), Label.parse("//a:b.perf#2")

    assert first.covers(first)
    assert first.covers(second)
    assert second.covers(second)
    assert not second.covers(first)
    assert Label.parse("//a:b.perf#1").covers(first)
    assert not Label.parse("//a:b.perf#1").covers(second)
    assert Label.parse("//a:b#2").sub("perf") == second
