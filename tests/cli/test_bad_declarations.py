"""What is declared wrongly is refused with one clear error: where, what, what to do."""

from __future__ import annotations

import pytest

from tests.testkit.cli import CliWorkspace

from .conftest import TASK


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("brief ", "breif ", 5, ("has no attribute 'breif'", "did you mean 'brief'?")),
        ("[[hip2hip]]", "[[hip2hop]]", 1, ("hip2hop", "did you mean 'hip2hip'?")),
        ("T[n]", "T[m]", 7, ("unknown dim 'm'", "declared dims: n")),
        ("{ n = 1048 }", "{ n = 70000 }", 11, ("outside the shape space: n = 70000", "65536")),
        ("{ n = 1048 }", "{ m = 1 }", 11, ("unknown dim 'm'",)),
        ('"double.hip"', '"duoble.hip"', 3, ("duoble.hip", "double.hip")),
        ('"reference.py"', '"referense.py"', 4, ("referense.py", "reference.py")),
        ('"double.hip"', '"../x.hip"', 3, ("../x.hip",)),
        ('["f32"]', '["f33"]', 10, ("unknown dtype 'f33'", "f32")),
        ('"1..65536"', '"65536..1"', 9, ("is no range for dim 'n'",)),
        ('flops     = "n"', 'flops     = "n ** 2"', 12, ("is no integer expression",)),
        ('"twice"', "7", 6, ("'entry'", "a string")),
        ("flops ", "perf = { sample = 3 }\nflops ", 12, ("'sample'", "did you mean 'samples'?")),
        ("flops ", 'compare = { y = "sort" }\nflops ', 12, ("'sort'", "did you mean 'sorted'?")),
        ("flops ", 'compare = { z = "sorted" }\nflops ', 12, ("'z' is no output", "outputs: y")),
        ("flops ", 'compare = { y = "topk_indices" }\nflops ', 12, ("'topk_indices(x)'",)),
        ("flops ", 'compare = { y = "topk_indices(x)" }\nflops ', 12, ("no indices",)),
        ("flops ", 'compare = { y = "sampled" }\nflops ', 12, ("the input that is the seed",)),
        ("flops ", 'compare = { y = "sampled(z)" }\nflops ', 12, ("the input that is the seed",)),
        ("flops ", 'compare = { y = "sampled(x)" }\nflops ', 12, ("a seed is i64 or i32",)),
        ("flops ", 'compare = { y = "sampeld(x)" }\nflops ', 12, ("sampled",)),
        ("flops ", 'compare = { y = "quantised" }\nflops ', 12, ("no steps to be off by",)),
        ("flops ", 'compare = { y = "exact(x)" }\nflops ', 12, ("takes no argument",)),
        ("flops ", "unseen = { cycles = 0 }\nflops ", 12, ("'cycles' is 0", "at least 1")),
        ("flops ", "tolerance = { f17 = { atol = 1 } }\nflops ", 12, ("unknown dtype 'f17'",)),
        ("flops ", 'correctness = { distributions = ["zero"] }\nflops ', 12, ("mean 'zeros'?",)),
    ],
)
def test_a_bad_declaration_names_line_and_cure(
    task: CliWorkspace, old: str, new: str, line: int, words: tuple[str, ...]
) -> None:
    task.write("double/BUILD.toml", TASK.replace(old, new, 1))

    ran = task.run("test", "//...")

    assert (ran.code, ran.out) == (1, "")
    assert f"double/BUILD.toml:{line}" in ran.err
    for word in words:
        assert word in ran.err
    assert "Traceback" not in ran.err


def test_a_missing_attribute_is_named(task: CliWorkspace) -> None:
    task.write("double/BUILD.toml", TASK.replace('entry     = "twice"\n', ""))

    ran = task.run("test", "//double")

    assert ran.code == 1
    assert "double/BUILD.toml:1" in ran.err
    assert "'entry'" in ran.err


def test_a_syntax_error_shows_where(task: CliWorkspace) -> None:
    task.write("double/BUILD.toml", TASK.replace('"T[n]" }', '"T[n]"', 1))

    ran = task.run("test", "//double")

    assert ran.code == 1
    assert "double/BUILD.toml:7" in ran.err
    assert "Traceback" not in ran.err


def test_a_duplicate_name_is_refused(task: CliWorkspace) -> None:
    task.write("double/BUILD.toml", TASK + TASK)

    ran = task.run("test", "//double")

    assert ran.code == 1
    assert "double/BUILD.toml:13" in ran.err
    assert "':double' is declared twice" in ran.err


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("test", "//doubel"), 2, ("doubel", "did you mean")),
        (("test", "//double:doubel"), 2, ("doubel", "double")),
        (("test", "@x//a:b"), 2, ("names another repository",)),
        (("test", "//double", "--platform=cdua"), 2, ("no platform 'cdua'",)),
        (("test", "//double", "--agent=exprt"), 2, ("exprt",)),
        (("test", "//double", "--gates=perv"), 2, ("unknown gate 'perv'", "'perf'")),
        (("test", "//double", "--gates=+sanitise"), 2, ("unknown gate 'sanitise'", "'sanitize'")),
        (("test", "//double", "--gates=compile,+sanitize"), 2, ("both names gates and changes",)),
        (("test", "//double", "--gates=+"), 2, ("unknown gate ''",)),
        (("test", "//double", "--policy=aca"), 2, ("unknown scoring policy", "'aka'")),
        (("test", "//double", "--solution=no.hip"), 2, ("no file or directory 'no.hip'",)),
        (("test", "//double", "--config=ci"), 2, ("[config.ci]",)),
        (("test", "//double", "--jops=2"), 2, ("--jops", "--jobs")),
        (("tset", "//double"), 2, ("no command 'tset'", "'test'")),
        (("query", "deps(//double"), 2, ("query",)),
        (("info", "workspaec"), 2, ("no info key", "'workspace'")),
        (("test", "//double", "--test_tag_filters=none"), 4, ("no tests match",)),
    ],
)
def test_a_bad_command_line_names_the_cure(
    task: CliWorkspace, arguments: tuple[str, ...], code: int, words: tuple[str, ...]
) -> None:
    ran = task.run(*arguments)

    assert (ran.code, ran.out) == (code, "")
    for word in words:
        assert word in ran.err
    assert "Traceback" not in ran.err


def test_outside_a_workspace_the_error_says_how_to_make_one(
    workspace: CliWorkspace,
) -> None:
    (workspace.root / "WORKSPACE.toml").unlink()

    ran = workspace.run("test", "//...")

    assert ran.code in {1, 2}
    assert "WORKSPACE.toml" in ran.err


def test_a_cycle_is_shown_with_its_path(workspace: CliWorkspace) -> None:
    workspace.write(
        "rules/link/rule.py",
        "from kabuild.rule import Context, Rule, attr\n\n"
        "def implement(ctx: Context) -> None:\n    pass\n\n"
        'RULE = Rule(kind="link", doc="Links.", implement=implement,\n'
        '            attrs={"to": attr.label("Where to.", required=True)})\n',
    )
    workspace.write("a/BUILD.toml", '[[link]]\nname = "a"\nto = "//b"\n')
    workspace.write("b/BUILD.toml", '[[link]]\nname = "b"\nto = "//a"\n')

    ran = workspace.run("build", "//a")

    assert ran.code == 1
    assert "//a -> //b -> //a" in ran.err
    assert "BUILD.toml:3" in ran.err
