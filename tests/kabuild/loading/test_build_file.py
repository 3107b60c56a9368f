"""BUILD.toml files: what is accepted, and one clear error for everything else."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from kabuild.base.errors import LoadError, LoadErrors, Position, Reason
from kabuild.model.action import Source
from kabuild.model.label import Label

if TYPE_CHECKING:
    from tests.kabuild.conftest import Project

FULL = """\
solutions = "s"
headers = ["inc/**", "a.src"]
deps = [":other", "//b", "c:d"]
compiler = "//x:y"
wave = 32
ratio = 2
fast = true
mode = "fancy"
words = ["w"]
dims = { n = "1..2" }
sizes = [{ n = 1 }]
caps = { cpu = 3 }
places = ["cpu"]
tags = ["smoke"]
"""


def failure(project: Project, package: str = "a") -> LoadError:
    with pytest.raises(LoadError) as caught:
        project.loader().package(package)
    return caught.value


def test_every_attribute_has_its_type(project: Project) -> None:
    for path in ("a/s/x", "a/inc/one.h", "a/inc/deep/two.h", "a/inc/.hidden"):
        project.write(path)
    project.task("a", FULL)
    target = project.loader().target(Label("a", "a"))
    assert target.position == Position("a/BUILD.toml", 1)
    assert target.tags == ("smoke",)
    assert target.subtargets == ("compile", "perf", "score", "baseline.compile")
    assert target.attrs == {
        "source": Source("a/a.src"),
        "oracle": None,
        "headers": (Source("a/a.src"), Source("a/inc/deep/two.h"), Source("a/inc/one.h")),
        "solutions": Source("a/s"),
        "deps": (Label("a", "other"), Label("b", "b"), Label("a/c", "d")),
        "compiler": Label("x", "y"),
        "wave": 32,
        "ratio": 2,
        "fast": True,
        "mode": "fancy",
        "words": ("w",),
        "dims": {"n": "1..2"},
        "sizes": ({"n": 1},),
        "caps": {"cpu": 3},
        "places": ("cpu",),
    }


def test_defaults(project: Project) -> None:
    """Default files are taken where they exist; ``{platform}`` stays for analysis."""
    project.write("a/oracle.py")
    project.write("a/x.h")
    project.write("a/solutions/expert/a.src")
    project.task("a")
    attrs = project.loader().target(Label("a", "a")).attrs
    assert attrs["oracle"] == Source("a/oracle.py")
    assert attrs["headers"] == (Source("a/x.h"),)
    assert attrs["solutions"] == Source("a/solutions")
    assert attrs["compiler"] == "//toolchains/cc:{platform}"
    assert (attrs["deps"], attrs["words"], attrs["dims"], attrs["sizes"]) == ((), (), {}, ())


def test_the_root_is_a_package(project: Project) -> None:
    project.write("x.src")
    project.write("BUILD.toml", '[[task]]\nname = "x"\nsource = "x.src"')
    assert project.loader().target(Label("", "x")).attrs["source"] == Source("x.src")


HEAD = '[[task]]\nname = "a"\nsource = "a.src"\n'


@pytest.mark.parametrize(
    ("text", "reason", "message", "hint"),
    [
        (
            '[[tusk]]\nname = "a"',
            Reason.UNKNOWN_RULE,
            "a/BUILD.toml:1: no rule 'tusk'",
            "did you mean 'task'?",
        ),
        ('[[x]]\nname = "a"', Reason.UNKNOWN_RULE, ":1: no rule 'x'", "rules: group, task, tool"),
        ("[[task]]", Reason.MISSING_ATTRIBUTE, ":1: a task without a name", "add name"),
        (
            "[[group]]\nname = 3",
            Reason.BAD_ATTRIBUTE,
            ":2: the integer 3 is not a valid target name",
            "",
        ),
        ('[[group]]\nname = "a/b"', Reason.BAD_ATTRIBUTE, ':2: the string "a/b" is no', "letters"),
        ('[[group]]\nname = "all"', Reason.BAD_ATTRIBUTE, ':2: the string "all" is no', ""),
        (
            HEAD + "wvae = 1",
            Reason.UNKNOWN_ATTRIBUTE,
            "a/BUILD.toml:4: task has no attribute 'wvae'",
            "did you mean 'wave'?",
        ),
        (
            HEAD + "zzz = 1",
            Reason.UNKNOWN_ATTRIBUTE,
            ":4: task has no attribute 'zzz'",
            "attributes: name, tags, source,",
        ),
        (
            '[[task]]\nname = "a"',
            Reason.MISSING_ATTRIBUTE,
            ":1: task 'a' lacks the attribute 'source'",
            "source: The source.",
        ),
        (
            HEAD + 'wave = "64"',
            Reason.BAD_ATTRIBUTE,
            ":4: attribute 'wave': found the string \"64\", expected an integer",
            "",
        ),
        (HEAD + "wave = true", Reason.BAD_ATTRIBUTE, "found the boolean true, expected an int", ""),
        (HEAD + "wave = 1.5", Reason.BAD_ATTRIBUTE, "found the number 1.5, expected an int", ""),
        (HEAD + "ratio = true", Reason.BAD_ATTRIBUTE, "the boolean true, expected a number", ""),
        (HEAD + "fast = 1", Reason.BAD_ATTRIBUTE, "the integer 1, expected true or false", ""),
        (HEAD + "mode = 1979-05-27", Reason.BAD_ATTRIBUTE, "a date or time, expected a str", ""),
        (HEAD + "mode = []", Reason.BAD_ATTRIBUTE, "found a list, expected a string", ""),
        (
            HEAD + 'mode = "fency"',
            Reason.BAD_ATTRIBUTE,
            "found 'fency', expected one of 'plain', 'fancy'",
            "did you mean 'fancy'?",
        ),
        (HEAD + 'dims = "x"', Reason.BAD_ATTRIBUTE, 'the string "x", expected a table', ""),
        (
            HEAD + 'words = [\n  "a",\n  2,\n]',
            Reason.BAD_ATTRIBUTE,
            "a/BUILD.toml:6: attribute 'words': found the integer 2 in the list, expected a list",
            "",
        ),
        (HEAD + "sizes = [1]", Reason.BAD_ATTRIBUTE, "the integer 1 in the list, expected a l", ""),
        (
            HEAD + "[task.caps]\ncpu = 1\ncpuu = 1",
            Reason.BAD_ATTRIBUTE,
            "a/BUILD.toml:6: attribute 'caps': unknown platform 'cpuu'",
            "did you mean 'cpu'?",
        ),
        (
            HEAD + 'places = [\n  "cpu",\n  "gpu",\n]',
            Reason.BAD_ATTRIBUTE,
            "a/BUILD.toml:6: attribute 'places': unknown platform 'gpu'",
            "platforms: cpu",
        ),
        (HEAD + "caps = 3", Reason.BAD_ATTRIBUTE, "expected a table by platform", ""),
        (HEAD + 'places = ["cpu", 2]', Reason.BAD_ATTRIBUTE, "expected a list of platforms", ""),
        (HEAD + 'tags = "x"', Reason.BAD_ATTRIBUTE, ':4: tags: found the string "x", expected', ""),
        (
            HEAD + 'deps = ["@x/y"]',
            Reason.BAD_LABEL,
            ":4: attribute 'deps': '@x/y'",
            "look like @kernelbench//",
        ),
        (
            HEAD + 'compiler = "//a b"',
            Reason.BAD_LABEL,
            "'//a b' is not a valid label",
            "labels look",
        ),
        (
            HEAD + "sizes = [\n  { n = 1 },\n  { n = 0 },\n]",
            Reason.BAD_ATTRIBUTE,
            "a/BUILD.toml:6: size 0 is too small",
            "use 1",
        ),
        (HEAD + 'oracle = "oracel.py"', Reason.MISSING_FILE, ":4: attribute 'oracle': no file", ""),
        ('[task]\nname = "a"', Reason.BAD_ATTRIBUTE, ":1: 'task' is a table;", "write [[task]]"),
        ("x = 1", Reason.BAD_ATTRIBUTE, ":1: 'x' is the integer 1; a BUILD.toml holds", ""),
        ("[[task]\n", Reason.TOML_SYNTAX, "a/BUILD.toml:1:7: not TOML", "^"),
    ],
)
def test_mistakes(project: Project, text: str, reason: Reason, message: str, hint: str) -> None:
    project.write("a/a.src")
    project.write("a/BUILD.toml", text)
    error = failure(project)
    assert error.reason is reason
    assert message in str(error)
    assert hint in error.hint


def test_a_duplicate_names_both_lines(project: Project) -> None:
    project.write("a/BUILD.toml", '[[group]]\nname = "x"\n\n[[group]]\nname = "x"\n')
    error = failure(project)
    assert error.reason is Reason.DUPLICATE_TARGET
    assert (
        str(error) == "a/BUILD.toml:4: ':x' is declared twice\n  first declared at a/BUILD.toml:1"
    )


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_subtarget_is_a_name_too(project: Project, order: tuple[int, int]) -> None:
    project.write("a/a.src")
    parts = (HEAD, '[[group]]\nname = "a.perf"\n')
    project.write("a/BUILD.toml", "".join(parts[index] for index in order))
    error = failure(project)
    assert error.reason is Reason.DUPLICATE_TARGET
    assert "':a.perf' is declared twice" in error.message


def test_all_problems_of_a_file_are_reported_together(project: Project) -> None:
    project.write(
        "a/BUILD.toml",
        """\
        [[group]]
        nam = "x"

        [[nothing]]
        name = "y"

        [[task]]
        name = "z"
        source = "gone"
        wvae = 1
        """,
    )
    error = failure(project)
    assert isinstance(error, LoadErrors)
    assert [(part.position.line, part.reason) for part in error.errors if part.position] == [
        (1, Reason.MISSING_ATTRIBUTE),
        (4, Reason.UNKNOWN_RULE),
        (10, Reason.UNKNOWN_ATTRIBUTE),
        (9, Reason.MISSING_FILE),
    ]


def test_text_that_looks_like_a_header_is_not_counted(project: Project) -> None:
    words = 'words = ["""\n[[group]]\n"""]'
    project.write("a/BUILD.toml", f'{HEAD}{words}\n[[group]]\nname = "y"\n')
    project.write("a/a.src", "")
    loader = project.loader()
    assert loader.target(Label("a", "a")).position.line == 1
    assert loader.target(Label("a", "y")).position.line == 7


@pytest.mark.parametrize("tag", ["", "-slow", "a,b", " a", "a\u001b[31m", "x" * 65, "*"])
def test_a_tag_that_no_filter_can_name_is_refused(project: Project, tag: str) -> None:
    project.write("a/BUILD.toml", f'[[group]]\nname = "x"\ntags = ["fine", {json.dumps(tag)}]\n')
    error = failure(project)
    assert error.reason is Reason.BAD_ATTRIBUTE
    assert "a/BUILD.toml:3: " in str(error)
    assert "is not a valid tag" in str(error)


def test_tags_are_kept_as_they_are(project: Project) -> None:
    tags = ["memory-bound", "level1/x", "Llama 3 8B", "x" * 64]
    project.write("a/BUILD.toml", f'[[group]]\nname = "x"\ntags = {json.dumps(tags)}\n')
    assert project.loader().target(Label("a", "x")).tags == tuple(tags)


def test_too_many_tags_are_refused(project: Project) -> None:
    tags = [f"t{number}" for number in range(101)]
    project.write("a/BUILD.toml", f'[[group]]\nname = "x"\ntags = {json.dumps(tags)}\n')
    assert "101 tags: at most 100" in str(failure(project))
