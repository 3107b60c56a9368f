"""What is declared wrongly is refused with one clear error: where, what, what to do."""

from __future__ import annotations

import json

import pytest

from tests.testkit.cli import CliWorkspace

from .conftest import REFERENCE, TASK


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
        ('"1..65536"', '"65536..1"', 9, ("'n' has no value from 65536 to 1", "1..65536")),
        ('flops     = "n"', 'flops     = "n ** 2"', 12, ("is not an integer expression",)),
        ('"twice"', "7", 6, ("'entry'", "a string")),
        ('"twice"', '"2ice"', 6, ("'2ice' is not a valid entry",)),
        ('"twice"', '"double"', 6, ("'double' is not a valid entry", "it is a keyword")),
        ('"twice"', '"a; b"', 6, ("'a; b' is not a valid entry",)),
        ('["f32"]', '["f32", "f16", "f32"]', 10, ("dtype 'f32' is declared twice",)),
        (
            '"1..65536"',
            '"1..99999999999999999999"',
            9,
            ("is not a range for dim 'n'", "at most 18 digits"),
        ),
        ('"1..65536"', '"1.5..2"', 9, ("is not a range for dim 'n'",)),
        ('"1..65536"', '"-1..2"', 9, ("is not a range for dim 'n'",)),
        ("{ n = 1048 }", "{ n = 10.5 }", 11, ("n = 10.5 is not an integer", "'n' goes from 1 to")),
        ("{ n = 1048 }", "{ n = 8 }, { n = 8 }", 11, ("is declared twice",)),
        ("T[n]", "T[n - 2000]", 11, ("the shape of 'x' is invalid", "is -952")),
        ("T[n]", "T[n // (n - 1048)]", 11, ("the shape of 'x' is invalid", "divides by zero")),
        ("T[n]", "T[n*n*n*n*n*n*n*n]", 11, ("more than 10^18", "no device holds")),
        ('flops     = "n"', 'flops     = "m"', 12, ("unknown dim 'm'", "declared dims: n")),
        ('flops     = "n"', 'flops     = "1 // (n - 1)"', 12, ("divides by zero where n=1",)),
        ('flops     = "n"', 'flops     = "n - 2000"', 12, ("is -952 where n=1048",)),
        ('flops     = "n"', 'flops     = "9**9**9"', 12, ("is not an integer expression",)),
        ('flops     = "n"', f'flops     = "n{"+n" * 3000}"', 12, ("more than 400 characters",)),
        ('flops     = "n"', f'flops     = "{"(" * 190}n"', 12, ("is not an expression",)),
        ("flops ", "scalars = { eps = true }\nflops ", 12, ("must be a number",)),
        ("flops ", "scalars = { eps = inf }\nflops ", 12, ("must be a number",)),
        ("flops ", "scalars = { if = 1 }\nflops ", 12, ("it is a keyword",)),
        ("flops ", "scalars = { x = 1 }\nflops ", 12, ("'x' is declared twice",)),
        ("{ n = 1048 }", '{ n = 8, eps = "a" }', 11, ("unknown dim 'eps'",)),
        (
            "flops ",
            'scalar_ranges = { eps = "0..1" }\nflops ',
            12,
            ("there is no scalar 'eps'", "known: none"),
        ),
        (
            "flops ",
            "scalars = { eps = 1e-5 }\nscalar_ranges = { eps = 1e-4 }\nflops ",
            13,
            ("0.0001 is not a range of scalar 'eps'", 'write eps = "1e-05..2e-05"'),
        ),
        (
            "flops ",
            'scalars = { k = 2 }\nscalar_ranges = { k = "1.5..4" }\nflops ',
            13,
            ("'1.5..4' is not a range of scalar 'k', an integer as it is usually 2", '"2..4"'),
        ),
        (
            "flops ",
            "scalars = { k = -100 }\nscalar_ranges = { k = 7 }\nflops ",
            13,
            ("7 is not a range of scalar 'k'", 'write k = "-200..-100"'),
        ),
        (
            "flops ",
            'scalars = { eps = 1e-5 }\nscalar_ranges = { eps = "1..nan" }\nflops ',
            13,
            ("'eps' has no values from 1.0 to nan",),
        ),
        (
            "flops ",
            'scalars = { eps = 1e-5 }\nscalar_ranges = { eps = "1e-2..1e-8" }\nflops ',
            13,
            ("'eps' has no values from 0.01 to 1e-08", 'write eps = "1e-08..0.01"'),
        ),
        (
            "flops ",
            'scalars = { eps = 1e-5 }\nscalar_ranges = { eps = "1e-4..1e-2" }\nflops ',
            13,
            (
                "'eps' is 1e-05 in a visible config, outside of 0.0001 to 0.01",
                "usually it is 1e-05",
            ),
        ),
        ("flops ", "perf = { sample = 3 }\nflops ", 12, ("'sample'", "did you mean 'samples'?")),
        ("flops ", 'compare = { y = "sort" }\nflops ', 12, ("'sort'", "did you mean 'sorted'?")),
        (
            "flops ",
            'compare = { z = "sorted" }\nflops ',
            12,
            ("'z' is not an output", "outputs: y"),
        ),
        ("flops ", 'compare = { y = "topk_indices" }\nflops ', 12, ("'topk_indices(x)'",)),
        ("flops ", 'compare = { y = "topk_indices(x)" }\nflops ', 12, ("indices are integers",)),
        (
            "flops ",
            'compare = { y = "sampled" }\nflops ',
            12,
            ("the name of the input that holds the seed",),
        ),
        (
            "flops ",
            'compare = { y = "sampled(z)" }\nflops ',
            12,
            ("the name of the input that holds the seed",),
        ),
        ("flops ", 'compare = { y = "sampled(x)" }\nflops ', 12, ("a seed is i64 or i32",)),
        ("flops ", 'compare = { y = "sampeld(x)" }\nflops ', 12, ("sampled",)),
        ("flops ", 'compare = { y = "quantised" }\nflops ', 12, ("cannot be quantised",)),
        ("flops ", 'compare = { y = "exact(x)" }\nflops ', 12, ("takes no argument",)),
        ("flops ", "unseen = { cycles = 0 }\nflops ", 12, ("'cycles' is 0", "from 1 to 1,000")),
        ('T[n]" }\ndims', 'T[0]" }\ndims', 11, ("output 'y' has no elements", "to compare")),
        ("T[n]", "T[99999999999]", 11, ("'x' has 99,999,999,999 elements", "256 GiB")),
        ("flops ", "limits = { cpu = { elements = 9, extend = 9 } }\nflops ", 12, ("'extend'",)),
        ("flops ", "limits = { cpu = { elements = 9, extent = 0 } }\nflops ", 12, ("is 0",)),
        ("flops ", "limits = { cpu = { elements = true } }\nflops ", 12, ("is True",)),
        ('flops     = "n"', 'flops     = "n * 1' + "0" * 99 + '"', 12, ("is more than 1e+20",)),
        ('"y = 2 x."', '" "', 5, ("'brief'", "it is empty")),
        ("flops ", 'tags = ["-slow"]\nflops ', 12, ("'-slow' is not a valid tag",)),
        ("flops ", 'where = [""]\nflops ', 12, ("is not an expression",)),
        ("flops ", 'distributions = ["a b"]\nflops ', 12, ("'a b' is not a valid name",)),
        (
            "{ n = 1048 }",
            ", ".join(f"{{ n = {n} }}" for n in range(1, 1003)),
            11,
            ("1002 configs",),
        ),
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


@pytest.mark.parametrize("name", ["lambda", "int", "dtype", "stream", "x-y", "1", "n" * 200])
def test_a_name_is_one_for_c_and_python(task: CliWorkspace, name: str) -> None:
    text = TASK.replace("{ n = ", f"{{ {json.dumps(name)} = ").replace("T[n]", "T[2]")
    task.write("double/BUILD.toml", text.replace('flops     = "n"', 'flops     = "2"'))

    ran = task.run("test", "//...")

    assert (ran.code, ran.out) == (1, "")
    assert "double/BUILD.toml:9" in ran.err
    assert "is not a valid name of a dim" in ran.err


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
        (("test", "@x//a:b"), 2, ("no repository '@x'",)),
        (("test", "//double", "--platform=cdua"), 2, ("unknown platform 'cdua'",)),
        (("test", "//double", "--agent=exprt"), 2, ("exprt",)),
        (("test", "//double", "--gates=perv"), 2, ("unknown gate 'perv'", "'perf'")),
        (("test", "//double", "--gates=+sanitise"), 2, ("unknown gate 'sanitise'", "'sanitize'")),
        (("test", "//double", "--gates=compile,+sanitize"), 2, ("mixes gates with changes",)),
        (("test", "//double", "--gates=+"), 2, ("unknown gate ''",)),
        (("test", "//double", "--policy=aca"), 2, ("unknown scoring policy", "'aka'")),
        (("test", "//double", "--solution=no.hip"), 2, ("no file or directory 'no.hip'",)),
        (("test", "//double", "--config=ci"), 2, ("[config.ci]",)),
        (("test", "//double", "--jops=2"), 2, ("--jops", "--jobs")),
        (("tset", "//double"), 2, ("no command 'tset'", "'test'")),
        (("query", "deps(//double"), 2, ("query",)),
        (("info", "workspaec"), 2, ("no info key", "'workspace'")),
        (
            ("test", "//double", "--test_tag_filters=none"),
            4,
            ("no tasks match", "with the tags 'none'"),
        ),
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


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        ("return {'y': x.nope()}", "double/reference.py:9: reference() raised AttributeError: "),
        ("return {'y': 2 * x[1:]}", "double/reference.py:8: reference() returned 'y' as 1047, "),
    ],
)
def test_a_mistake_in_the_reference_is_the_tasks(
    quick: CliWorkspace, broken: str, said: str
) -> None:
    """Neither the machine's nor the candidate's: it is told with its line."""
    quick.write("double/reference.py", REFERENCE.replace('return {"y": 2 * x}', broken))

    ran = quick.run("test", "//double")

    assert ran.code == 1, ran.out + ran.err
    assert "//double:double.correctness: failed\n  " + said in ran.out
    assert "INFRA" not in ran.out
    assert "REJECTED" not in ran.out
