"""The flags of ``test``, and the commands around it, in a workspace with a few tasks."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest

from kabuild.base.errors import StoreError
from kabuild.cli import build, clean
from kabuild.scheduler import FileLeases
from tests.testkit.cli import CliWorkspace, Ran

from .conftest import KERNEL, declare

GATES = ("compile", "correctness", "perf", "score", "unseen")
COMPILE = "--gates=compile"


@pytest.fixture(scope="module")
def judged(module_workspace: CliWorkspace) -> CliWorkspace:
    """//a/one (tags: quick), //a/two and //b/three, which does not compile; all judged."""
    for package in ("a/one", "a/two"):
        declare(module_workspace, package)
    declare(module_workspace, "b/three", solution=KERNEL.replace("2.0f", "factor"))
    tagged = module_workspace.root / "a/one/BUILD.toml"
    tagged.write_text(tagged.read_text().replace("flops ", 'tags = ["quick"]\nflops ', 1))
    assert module_workspace.run("test", "//...").code == 3
    return module_workspace


@pytest.fixture
def tasks(judged: CliWorkspace, tmp_path: Path) -> CliWorkspace:
    """The judged workspace, free to be changed."""
    return judged.copy(tmp_path)


def tasks_of(ran: Ran) -> list[str]:
    return list(dict.fromkeys(entry["task"].partition(":")[0] for entry in ran.json["targets"]))


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("//a/...",), ["//a/one", "//a/two"]),
        (("//a/...", "//b/three", "--", "-//a/one"), ["//a/two", "//b/three"]),
        (("--", "//...", "-//b/..."), ["//a/one", "//a/two"]),
        (("//...", "--test_tag_filters=quick"), ["//a/one"]),
        (("//a/...", "--test_tag_filters=-quick"), ["//a/two"]),
        (("//a/one:all",), ["//a/one"]),
        (("//a/two:two.score",), ["//a/two"]),
    ],
)
def test_patterns_choose_tasks(
    tasks: CliWorkspace, arguments: tuple[str, ...], expected: list[str]
) -> None:
    flags = () if "score" in arguments[0] else (COMPILE,)

    assert tasks_of(tasks.run("test", *flags, "--json", *arguments)) == expected


def test_a_relative_label_belongs_to_the_directory(tasks: CliWorkspace) -> None:
    ran = tasks.run("test", ":one", COMPILE, "--json", cwd="a/one")

    assert tasks_of(ran) == ["//a/one"]
    assert (tasks.root / "out/a/one/one.compile").is_dir()


def test_gates_limit_what_is_judged_and_asked(tasks: CliWorkspace) -> None:
    ran = tasks.run("test", "//a/one", "--gates=correctness,compile", "--json")

    assert [entry["gate"] for entry in ran.json["targets"]] == ["compile", "correctness"]
    assert ran.json["totals"]["cached"] < 7


def test_a_label_of_one_gate_runs_it_and_what_it_needs(tasks: CliWorkspace) -> None:
    ran = tasks.run("test", "//a/one:one.correctness", "--json")

    assert [entry["gate"] for entry in ran.json["targets"]] == ["correctness"]
    assert ran.json["totals"]["passed"] == 1


@pytest.mark.parametrize("flag", ["--nokeep_going", "--keep_going"])
def test_a_failure_stops_the_others_only_where_asked(tasks: CliWorkspace, flag: str) -> None:
    """Two new kernels; the first fails. One job makes the order plain."""
    tasks.write("a/one/solutions/expert/double.hip", KERNEL.replace("2.0f", flag.strip("-")))
    tasks.write("a/two/solutions/expert/double.hip", KERNEL.replace("256", f"2{len(flag)}"))

    ran = tasks.run("test", "//a/...", COMPILE, flag, "--jobs=1", "--json")

    words = {entry["task"]: entry["verdict"] for entry in ran.json["targets"]}
    assert ran.code == 3
    assert words["//a/one:one"] == "FAIL"
    assert words["//a/two:two"] == ("CANCELLED" if flag == "--nokeep_going" else "PASS")


@pytest.mark.parametrize(
    ("output", "shown", "hidden"),
    [
        ("errors", ("//b/three:three.compile: FAIL", "'factor'"), ("//a/one:one.compile: PASS",)),
        ("all", ("//b/three:three.compile: FAIL", "//a/one:one.compile: PASS"), ("rerun",)),
        ("summary", ("//b/three", "//a/one"), ("'factor'", ".compile")),
    ],
)
def test_output_says_as_much_as_asked(
    tasks: CliWorkspace, output: str, shown: tuple[str, ...], hidden: tuple[str, ...]
) -> None:
    ran = tasks.run("test", "//...", COMPILE, f"--test_output={output}")

    assert ran.code == 3
    for word in shown:
        assert word in ran.out
    for word in hidden:
        assert word not in ran.out


def test_a_config_stands_for_flags_and_the_command_line_wins(tasks: CliWorkspace) -> None:
    tasks.write(
        "WORKSPACE.toml",
        'name = "test"\n[config.ci]\ngates = ["compile"]\njson = true\njobs = 1\n'
        "[config.tags]\ntest_tag_filters = 'quick'\n",
    )

    plain = tasks.run("test", "//a/...", "--config=ci")
    both = tasks.run("test", "//a/...", "--config=ci", "--config=tags")
    over = tasks.run("test", "//a/one", "--config=ci", "--gates=correctness")

    assert [entry["gate"] for entry in plain.json["targets"]] == ["compile", "compile"]
    assert tasks_of(both) == ["//a/one"]
    assert [entry["gate"] for entry in over.json["targets"]] == ["correctness"]


@pytest.mark.parametrize("line", ["jops = 2", 'config = "ci"', 'patterns = ["//x"]'])
def test_a_config_with_an_unknown_flag_is_refused(tasks: CliWorkspace, line: str) -> None:
    tasks.write("WORKSPACE.toml", f'name = "test"\n[config.ci]\n{line}\n')

    ran = tasks.run("test", "//...", "--config=ci")

    assert (ran.code, ran.out) == (2, "")
    what = f"[config.ci] sets unknown flag '{line.partition(' ')[0]}'"
    assert f"WORKSPACE.toml:3: {what}" in ran.err
    assert ("did you mean 'jobs'?" in ran.err) is line.startswith("jops")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('jobs = "many"', "invalid value for 'jobs': must be an integer, got 'many'"),
        ("trials = -4", "invalid value for 'trials': -4 is not in the range"),
        ('sandbox = "maybe"', "invalid value for 'sandbox': 'maybe' is not one of"),
        ('gates = ["compile", "nope"]', "unknown gate 'nope'"),
        ('locked = "perhaps"', "'locked' must be true or false, got \"perhaps\""),
        ("keep_going = 7", "'keep_going' must be true or false, got 7"),
        ("jobs = true", "'jobs' must be a string, a number or a list of these, got true"),
        ('devices = "x"', "--devices must be device numbers, got 'x'"),
        ('platform = "xpu"', "unknown platform 'xpu'"),
        ('agent = "nobody"', "no agent //toolchains/agents:nobody"),
        ('policy = "best"', "unknown scoring policy 'best'"),
    ],
)
def test_a_config_with_a_bad_value_is_refused(tasks: CliWorkspace, line: str, said: str) -> None:
    tasks.write("WORKSPACE.toml", f'name = "test"\n[config.ci]\n{line}\n')

    ran = tasks.run("test", "//...", "--config=ci")

    assert (ran.code, ran.out) == (2, "")
    assert f"WORKSPACE.toml:3: {said}" in ran.err
    assert "Traceback" not in ran.err


def test_agent_none_hands_in_the_tasks_own_kernel(tasks: CliWorkspace) -> None:
    """A control: what it says of itself is what it says of the baseline."""
    tasks.write("a/one/solutions/expert/double.hip", "no kernel")

    assert tasks.run("test", "//a/one", COMPILE, "--agent=none").code == 0
    assert tasks.run("test", "//a/one", COMPILE).code == 3


def test_a_workspace_chooses_its_agent(tasks: CliWorkspace) -> None:
    tasks.write("a/one/solutions/expert/double.hip", "no kernel")
    tasks.write("WORKSPACE.toml", 'name = "test"\n[defaults]\nagent = "none"\n')

    ran = tasks.run("test", "//a/one", COMPILE, "--json")

    assert ran.code == 0
    assert ran.json["agent"] == "//toolchains/agents:none"


def test_a_private_salt_draws_other_unseen_configs(tasks: CliWorkspace) -> None:
    tasks.write("salt", "0123456789abcdef\n")
    tasks.write("short", "guess")
    unseen = tasks.root / "out/a/one/one.unseen/verdict.json"

    def cases(*flags: str) -> list[Any]:
        assert tasks.run("test", "//a/one", "--gates=unseen", *flags).code == 0
        return [case["config"] for case in json.loads(unseen.read_bytes())["cases"]]

    assert cases() != cases("--unseen_salt_file=salt")
    refused = tasks.run("test", "//a/one", "--unseen_salt_file=short")
    assert refused.code == 2
    assert "at least 16" in refused.err


def test_another_policy_scores_again_and_judges_nothing(tasks: CliWorkspace) -> None:
    aka = tasks.run("test", "//a/one", "--json")
    other = tasks.run("test", "//a/one", "--policy=geomean", "--json")

    assert (aka.code, other.code) == (0, 0)
    assert other.executed == {"//a/one:one.score"}
    assert other.gate("score")["speedup"] == aka.gate("score")["speedup"]
    assert other.gate("score")["score"] == pytest.approx(aka.gate("score")["speedup"])


def test_jobs_may_be_many_or_one(tasks: CliWorkspace) -> None:
    results = [
        tasks.run("test", "//a/...", COMPILE, "--nocache_test_results", f"-j{jobs}", "--json")
        for jobs in (1, 8)
    ]

    assert [[e["verdict"] for e in ran.json["targets"]] for ran in results] == [["PASS"] * 2] * 2
    assert tasks.run("test", "//...", "--jobs=0").code == 2


# --- the commands around it ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("//...", ["//a/one:one", "//a/two:two", "//b/three:three"]),
        ("kind(hip2hip, //...) except //a/...", ["//b/three:three"]),
        ("attr(tags, quick, //...)", ["//a/one:one"]),
        ("tests(//a/one)", [f"//a/one:one.{g}" for g in GATES]),
        ("//a/one union //b/...", ["//a/one:one", "//b/three:three"]),
    ],
)
def test_query_prints_labels(tasks: CliWorkspace, expression: str, expected: list[str]) -> None:
    ran = tasks.run("query", expression)

    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines() == expected


def test_a_query_without_a_match_says_so(tasks: CliWorkspace) -> None:
    ran = tasks.run("query", "somepath(//a/one, //b/three)")

    assert (ran.code, ran.out, ran.err) == (0, "", "no target matches\n")


def test_query_knows_dependencies_both_ways(tasks: CliWorkspace) -> None:
    deps = tasks.run("query", "deps(//a/one)").out.splitlines()
    rdeps = tasks.run("query", "rdeps(//..., //toolchains/zig)").out.splitlines()

    assert {"//a/one:one", "//toolchains/hip:cpu", "//toolchains/zig:zig"} <= set(deps)
    assert {"//a/one:one", "//a/two:two", "//b/three:three"} <= set(rdeps)


@pytest.mark.parametrize("output", ["label", "label_kind", "location", "json", "graph"])
def test_query_has_formats(tasks: CliWorkspace, output: str) -> None:
    ran = tasks.run("query", "//a/...", f"--output={output}")

    assert ran.code == 0
    assert "//a/one" in ran.out
    if output == "json":
        json.loads(ran.out)
    if output == "location":
        assert "a/one/BUILD.toml:1" in ran.out


def test_info_says_where_things_are(tasks: CliWorkspace) -> None:
    everything = dict(line.split(": ", 1) for line in tasks.run("info").out.splitlines())

    assert everything["workspace"] == str(tasks.root)
    assert everything["store"] == str(tasks.store)
    assert tasks.run("info", "workspace", cwd="a/one").out == f"{tasks.root}\n"
    assert Path(everything["builtin"], "rules").is_dir()


def test_doctor_is_readable_and_agrees_with_itself(tasks: CliWorkspace) -> None:
    ran = tasks.run("doctor", "--json")
    findings = {item["name"]: item for item in ran.json}

    assert ran.code == (36 if any(f["state"] == "PROBLEM" for f in findings.values()) else 0)
    for name in (
        *("python", "torch", "triton", "ziglang", "kernel", "namespaces", "store"),
        *("NVIDIA GPU", "AMD GPU", "nvcc"),
    ):
        assert findings[name].keys() == {"name", "state", "found", "advice"}
        assert findings[name]["state"] in {"ok", "absent", "warning", "PROBLEM"}
    assert str(tasks.store) in findings["store"]["found"]
    printed = tasks.run("doctor")
    assert printed.code == ran.code
    assert len(printed.out.splitlines()) >= len(findings)


def test_clean_removes_the_views_and_keeps_the_results(tasks: CliWorkspace) -> None:
    tasks.run("test", "//a/...", COMPILE)
    ran = tasks.run("clean")

    assert ran.code == 0
    assert not (tasks.root / "out").exists()
    assert tasks.run("test", "//a/...", COMPILE, "--json").json["totals"]["executed"] == 0
    assert tasks.run("clean").code == 0
    assert tasks.run("clean").out == ""


def test_expunge_removes_what_is_the_stores_and_nothing_else(tmp_path: Path) -> None:
    """A person chose the directory; it may hold other things."""
    workspace = CliWorkspace.make(tmp_path)
    declare(workspace, "one")
    assert workspace.run("build", "//one:one.compile", "--sandbox_debug").code == 0
    (workspace.store / "letters.txt").write_text("dear")
    linked = tmp_path / "linked"
    linked.mkdir()
    (linked / "kept").touch()

    ran = workspace.run("clean", "--expunge")

    assert ran.code == 0
    assert [path.name for path in workspace.store.iterdir()] == ["letters.txt"]
    assert not (workspace.root / "out").exists()
    assert workspace.run("build", "//one:one.compile").code == 0


def test_expunge_leaves_a_store_that_is_used(tmp_path: Path) -> None:
    """A lease whose file is gone could be had a second time, and two would time on one device."""
    workspace = CliWorkspace.make(tmp_path)
    workspace.write("out/build.log", "")
    workspace.write("../store/timings.json", "{}")
    leases = FileLeases(workspace.store / "leases")
    assert leases.acquire("cuda-0")

    ran = workspace.run("clean", "--expunge")

    assert (ran.code, ran.out) == (36, "")
    assert f"process {os.getpid()} is using the store at {workspace.store};" in ran.err
    assert (workspace.root / "out").exists()
    assert workspace.run("clean").code == 0

    leases.release("cuda-0")
    assert workspace.run("clean", "--expunge").out.endswith("timings.json\n")
    assert [path.name for path in workspace.store.rglob("*")] == ["leases", "cuda-0.lock"]


def test_what_cannot_be_removed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(path / "roots"))

    monkeypatch.setattr(clean, "remove_tree", refuse)
    monkeypatch.chdir(CliWorkspace.make(tmp_path).root)
    Path("out").mkdir()

    with pytest.raises(StoreError, match=r"out: cannot be removed: Permission denied: .*/roots"):
        clean.command.main([], standalone_mode=False)


def test_clean_does_not_follow_a_link(tasks: CliWorkspace, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "work").touch()
    (tasks.root / "out").rename(tmp_path / "out")
    (tasks.root / "out").symlink_to(precious)

    assert tasks.run("clean").code == 0
    assert (precious / "work").exists()
    assert not (tasks.root / "out").exists()


def test_a_part_of_all_tasks_is_built_as_its_help_says() -> None:
    assert "kabuild build '//tasks/...:*.compile' --platform=" in (build.command.help or "")


def test_an_explanation_that_cannot_be_written_is_named(tasks: CliWorkspace) -> None:
    ran = tasks.run("test", "//a/...", COMPILE, "--explain=WORKSPACE.toml/why.txt")

    assert ran.code == 2
    assert ran.err == "error: --explain: WORKSPACE.toml/why.txt: Not a directory\n"


@pytest.mark.parametrize("size", ["0", "1025T", "8X", "-1"])
def test_what_a_bundle_may_unpack_to_is_within_bounds(tasks: CliWorkspace, size: str) -> None:
    ran = tasks.run("verify", "WORKSPACE.toml", f"--max_bytes={size}")

    assert ran.code == 2
    assert "invalid value for '--max_bytes'" in ran.err
