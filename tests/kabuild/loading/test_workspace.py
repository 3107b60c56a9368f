"""WORKSPACE.toml."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

import kabuild
from kabuild.base.errors import KabuildError, LoadError, Reason, UsageError
from kabuild.loading.roots import find_workspace
from kabuild.loading.workspace import Workspace, load_workspace
from kabuild.model.label import Label

FULL = """\
name = "mine"
kabuild = ">=0.1"

[defaults]
platform = "rocm"
agent = "quick"

[agents]
quick = "//agents:quick"

[toolchains]
"//toolchains/zig" = "//my:llvm"

[scoring]
policy = "geomean"
salt = "pepper"
records = "kept/records.json"

[config.ci]
jobs = 2
gates = ["compile", "perf"]
keep_going = true
"""


def load(tmp_path: Path, text: str) -> Workspace:
    (tmp_path / "WORKSPACE.toml").write_text(text)
    return load_workspace(tmp_path)


def test_everything_at_once(tmp_path: Path) -> None:
    workspace = load(tmp_path, FULL)
    assert (workspace.root, workspace.name) == (tmp_path, "mine")
    assert (workspace.platform, workspace.agent) == ("rocm", "quick")
    assert (workspace.policy, workspace.salt) == ("geomean", "pepper")
    assert workspace.records == "kept/records.json"
    assert workspace.toolchains == {Label.parse("//toolchains/zig"): Label.parse("//my:llvm")}
    assert workspace.config("ci") == {"jobs": 2, "gates": ["compile", "perf"], "keep_going": True}
    assert str(workspace.position("config", "ci", "gates")) == "WORKSPACE.toml:21"


def test_the_shortest_workspace_says_nothing_but_its_name(tmp_path: Path) -> None:
    workspace = load(tmp_path, 'name = "mine"')
    assert (workspace.platform, workspace.agent, workspace.policy, workspace.salt) == (None,) * 4


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("quick", "//agents:quick"),
        ("expert", "//toolchains/agents:expert"),
        ("//x/y:z", "//x/y:z"),
    ],
)
def test_agents_are_aliases_names_or_labels(tmp_path: Path, name: str, label: str) -> None:
    assert str(load(tmp_path, FULL).agent_label(name)) == label


def test_a_name_that_no_agent_can_have(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        load(tmp_path, FULL).agent_label("quick!")
    assert caught.value.reason is Reason.UNKNOWN_AGENT
    assert "'quick'" in caught.value.hint


def test_unknown_configs_are_refused_with_a_suggestion(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"has no \[config.cy\]") as caught:
        load(tmp_path, FULL).config("cy")
    assert caught.value.reason is Reason.UNKNOWN_CONFIG
    assert caught.value.hint == "it has: ci"


@pytest.mark.parametrize(
    ("text", "reason", "start", "hint"),
    [
        ('nam = "x"', Reason.UNKNOWN_KEY, "WORKSPACE.toml:1: unknown key 'nam'", "'name'"),
        (
            'name = "x"\n[defaults]\nplatfrom = "cpu"',
            Reason.UNKNOWN_KEY,
            "WORKSPACE.toml:3: unknown key 'platfrom' in [defaults]",
            "did you mean 'platform'?",
        ),
        (
            'name = "x"\n[remote]\ncache = "x"',
            Reason.UNKNOWN_KEY,
            "WORKSPACE.toml:3: unknown key 'cache' in [remote]",
            "known: trusted_keys",
        ),
        ("", Reason.MISSING_ATTRIBUTE, "WORKSPACE.toml: the workspace has no name", "name ="),
        ('name = ""', Reason.BAD_ATTRIBUTE, "WORKSPACE.toml:1: 'name' must be", ""),
        (
            "name = 3",
            Reason.BAD_ATTRIBUTE,
            "WORKSPACE.toml:1: 'name' must be a string that is not empty, got 3",
            "",
        ),
        (
            'name = "x"\ndefaults = 3',
            Reason.BAD_ATTRIBUTE,
            "WORKSPACE.toml:2: 'defaults' must be a table",
            "",
        ),
        (
            'name = "x"\n[agents]\na = "b:c"',
            Reason.BAD_LABEL,
            "WORKSPACE.toml:3: 'b:c' is not a valid label",
            "labels look like",
        ),
        (
            'name = "x"\n[toolchains]\n"//a" = "//b"\n"//b" = "//c"',
            Reason.BAD_ATTRIBUTE,
            "WORKSPACE.toml:2: //a is replaced by //b, which is replaced itself",
            "",
        ),
        (
            'name = "x"\n[config]\nci = 1',
            Reason.BAD_ATTRIBUTE,
            "WORKSPACE.toml:3: 'ci' must be a table",
            "",
        ),
        (
            'name = "x"\n[config.ci]\njobs = { a = 1 }',
            Reason.BAD_ATTRIBUTE,
            "WORKSPACE.toml:3: flag 'jobs'",
            "",
        ),
        (
            'name = "x"\n[defaults]\npolicy = "aka"\n[scoring]\npolicy = "aka"',
            Reason.BAD_ATTRIBUTE,
            "WORKSPACE.toml:5: the policy is set twice",
            "",
        ),
        ('name = "x"\nkabuild = "1"', Reason.BAD_ATTRIBUTE, "WORKSPACE.toml:2: '1' is not a", ">="),
        ("name = 'x'\nkabuild = 1", Reason.BAD_ATTRIBUTE, "WORKSPACE.toml:2: 1 is not a v", ">="),
        ("name = ", Reason.TOML_SYNTAX, "WORKSPACE.toml:1:8: not TOML", "^"),
    ],
)
def test_mistakes_are_named_with_their_line(
    tmp_path: Path, text: str, reason: Reason, start: str, hint: str
) -> None:
    with pytest.raises(LoadError) as caught:
        load(tmp_path, text)
    assert caught.value.reason is reason
    assert str(caught.value).startswith(start)
    assert hint in caught.value.hint


def test_a_file_for_a_newer_kabuild_says_so_before_anything_else(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match="needs kabuild 9000") as caught:
        load(tmp_path, 'name = "x"\nfuture = 1\nkabuild = ">=9000.1"')
    assert caught.value.reason is Reason.VERSION_TOO_OLD
    assert kabuild.__version__ in caught.value.message
    assert caught.value.position is not None
    assert caught.value.position.line == 3


def test_the_workspace_is_found_upwards(tmp_path: Path) -> None:
    load(tmp_path, 'name = "x"')
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    assert find_workspace(inner) == find_workspace(tmp_path) == tmp_path.resolve()
    (tmp_path / "a" / "WORKSPACE.toml").write_text('name = "y"')
    assert find_workspace(inner) == tmp_path.resolve() / "a"


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (Path.mkdir, "a directory"),
        (os.mkfifo, "a device or a pipe"),
        (lambda path: path.symlink_to("nowhere"), "a link to nothing"),
        (lambda path: path.symlink_to(path.name), "a link to nothing"),
    ],
    ids=["directory", "fifo", "dangling", "loop"],
)
def test_what_stands_in_place_of_the_file_is_named(
    tmp_path: Path, make: Callable[[Path], object], kind: str
) -> None:
    make(tmp_path / "WORKSPACE.toml")
    with pytest.raises(UsageError, match=f"WORKSPACE.toml is {kind}, not a file") as caught:
        find_workspace(tmp_path)
    assert caught.value.reason is Reason.NO_WORKSPACE


def test_no_workspace_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(KabuildError) as caught:
        find_workspace(tmp_path)
    assert caught.value.reason is Reason.NO_WORKSPACE
    assert "make one" in caught.value.hint


@pytest.mark.parametrize(("directory", "package"), [("", ""), ("a/b", "a/b"), (".x/y", ".x/y")])
def test_directories_have_packages(tmp_path: Path, directory: str, package: str) -> None:
    assert load(tmp_path, 'name = "x"').package_of(tmp_path / directory) == package
