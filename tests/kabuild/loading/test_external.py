"""External repositories: stanzas of WORKSPACE.toml, locks, and the targets made of both."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import pytest

from kabuild.analysis.query import query_labels
from kabuild.base.errors import KabuildError, LoadError, Reason, UsageError
from kabuild.loading import Loader, expand
from kabuild.loading.import_lock import LeftOut
from kabuild.model.action import Source
from kabuild.model.label import Label
from tests.kabuild.conftest import Project

STANZA = 'name = "toy"\n[[repository]]\nname = "kb"\nadapter = "kernelbench"\npath = "../kb"\n'
HEAD = 'schema = 1\nadapter = "ab"\n[terms]\nlicence = "MIT"\nredistribute = true\n'
TEXT = "class Model: ...\n"


def locked(name: str, more: str = "", attrs: str = "") -> str:
    path, digest = f"src/{name}.py", hashlib.sha256(TEXT.encode()).hexdigest()
    files = f'files = {{ "{path}" = "{digest}" }}\n'
    return f'\n[[task]]\nname = "{name}"\n{files}{more}[task.attrs]\nsource = "{path}"\n{attrs}'


@pytest.fixture
def imported(project: Project) -> Project:
    """Two tasks of level1, one of level2, and one that could not be imported."""
    project.write("WORKSPACE.toml", STANZA)
    project.write("rules/shared.py", "shared")
    for name in ("level1/1_A", "level1/2_B", "level2/1_A", "level2/9_Z"):
        project.write(f"../kb/src/{name}.py", TEXT)
    kind = 'kind = "task"\ntags = ["easy"]\n'
    tasks = [
        locked("level1/1_A", kind, 'headers = ["//rules/shared.py"]\n'),
        locked("level1/2_B", kind),
        locked("level2/1_A", kind),
        locked("level2/9_Z", 'left_out = { reason = "NEEDS_PACKAGE", why = "imports einops" }\n'),
    ]
    project.write("imports/kb.lock.toml", HEAD + "".join(tasks))
    return project


def names(loader: Loader, *patterns: str) -> list[str]:
    return [label.short for label in expand(loader, patterns)]


def test_a_locked_task_is_an_ordinary_target(imported: Project) -> None:
    loader = imported.loader()
    target = loader.target(Label.parse("@kb//level1/1_A"))

    assert (target.kind, target.tags) == ("task", ("easy",))
    assert target.attrs["source"] == Source("src/level1/1_A.py", "@kb")
    assert target.attrs["headers"] == (Source("rules/shared.py"),)
    assert (target.attrs["wave"], target.attrs["solutions"]) == (64, None)
    assert str(target.position) == "imports/kb.lock.toml:7"
    assert loader.target(Label.parse("@kb//level1/1_A:1_A.perf")) is target
    assert imported.root / "imports/kb.lock.toml" in loader.files()


def test_patterns_over_a_repository(imported: Project) -> None:
    loader = imported.loader()
    imported.task("mine")

    everything = ["@kb//level1/1_A", "@kb//level1/2_B", "@kb//level2/1_A"]
    assert names(loader, "@kb//...") == everything
    assert names(loader, "@kb//level1/...", "-@kb//level1/2_B") == everything[:1]
    assert names(loader, "@kb//level1/2_B:all") == everything[1:2]
    assert names(loader, "//mine/...") == ["//mine"]
    assert not any("@" in name for name in names(loader, "//..."))
    assert loader.notes["@kb"].startswith("not imported: 1 task of @kb//")
    assert [str(label) for label in query_labels(loader, "@kb//level2/...")] == [
        "@kb//level2/1_A:1_A"
    ]


def test_a_query_reads_no_original_and_a_build_names_all_that_changed(imported: Project) -> None:
    imported.write("../kb/src/level1/1_A.py", "changed")
    (imported.root / "../kb/src/level1/2_B.py").unlink()
    loader = imported.loader()
    labels = query_labels(loader, "@kb//...")

    with pytest.raises(LoadError) as caught:
        loader.check(labels)

    text = str(caught.value)
    assert "../kb/src/level1/1_A.py changed since it was imported" in text
    assert f"got:       sha256:{hashlib.sha256(b'changed').hexdigest()}" in text
    assert "../kb/src/level1/2_B.py cannot be read: No such file" in text
    assert "level2" not in text
    assert loader.target(labels[2]).attrs["wave"] == 64


def _without_checkout(project: Project) -> None:
    (project.root / "../kb").rename(project.root / "../elsewhere")


def _without_lock(project: Project) -> None:
    (project.root / "imports/kb.lock.toml").unlink()


def _with(text: str, by: str) -> Callable[[Project], None]:
    def change(project: Project) -> None:
        path = project.root / "imports/kb.lock.toml"
        path.write_text(path.read_text().replace(text, by))

    return change


@pytest.mark.parametrize(
    ("change", "pattern", "error", "reason", "message"),
    [
        (None, "@kc//level1/1_A", UsageError, Reason.UNKNOWN_PACKAGE, "did you mean '@kb'?"),
        (
            None,
            "@kb//level1/1_AB",
            UsageError,
            Reason.UNKNOWN_PACKAGE,
            "did you mean '@kb//level1/1_A'?",
        ),
        (
            None,
            "@kb//level1/1",
            UsageError,
            Reason.UNKNOWN_PACKAGE,
            "did you mean '@kb//level1/1_A'?",
        ),
        (
            None,
            "@kb//level1",
            UsageError,
            Reason.UNKNOWN_PACKAGE,
            "did you mean '@kb//level1/...'?",
        ),
        (
            None,
            "@kb//level2/9_Z",
            UsageError,
            Reason.UNKNOWN_PACKAGE,
            "NEEDS_PACKAGE\n  imports ei",
        ),
        (None, "@kb//level3/...", UsageError, Reason.UNKNOWN_PACKAGE, "no package below '@kb//lev"),
        (None, "@kb//level1/1_A:x", UsageError, Reason.UNKNOWN_TARGET, "in @kb//level1/1_A"),
        (_without_checkout, "@kb//...", LoadError, Reason.MISSING_FILE, "WORKSPACE.toml:2: no che"),
        (
            _without_lock,
            "@kb//...",
            LoadError,
            Reason.MISSING_FILE,
            "kabuild import kernelbench ../kb",
        ),
        (_with("schema = 1", "schema = 2"), "@kb//...", LoadError, Reason.BAD_LOCK, "schema is 2"),
        (_with('"task"', '"tusk"'), "@kb//...", LoadError, Reason.UNKNOWN_RULE, "toml:7: no rule"),
        (_with("files", "fils"), "@kb//...", LoadError, Reason.BAD_LOCK, "'level1/1_A' cannot be"),
        (
            _with("headers", "calls"),
            "@kb//...",
            LoadError,
            Reason.UNKNOWN_ATTRIBUTE,
            "'calls', whi",
        ),
        (
            _with('source = "src', 'source = "s'),
            "@kb//...",
            LoadError,
            Reason.MISSING_FILE,
            "no file",
        ),
        (
            _with('{ "src', '{ "../src'),
            "@kb//...",
            LoadError,
            Reason.MISSING_FILE,
            "outside of the ch",
        ),
    ],
)
def test_mistakes(
    imported: Project,
    change: Callable[[Project], None] | None,
    pattern: str,
    error: type[KabuildError],
    reason: Reason,
    message: str,
) -> None:
    if change:
        change(imported)
    loader = imported.loader()

    with pytest.raises(error) as caught:
        loader.check(expand(loader, [pattern]))

    assert caught.value.reason is reason
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ('commit = "12ab"\n', ":6: '12ab' is not a commit"),
        ('url = "x"\n', ":6: unknown key 'url'"),
        ('[[repository]]\nname = "kb"\nadapter = "a"\npath = "p"\n', ":7: the repository 'kb' is"),
        ('[[repository]]\nname = "K"\nadapter = "a"\npath = "p"\n', ":7: 'K' is not a valid"),
        ('[[repository]]\nname = "k"\npath = "p"\n', ":6: a [[repository]] without 'adapter'"),
        (
            '[[repository]]\nname = "k"\nadapter = "../x"\npath = "p"\n',
            ":8: '../x' is not the name of an adapter",
        ),
        (
            '[[repository]]\nname = "k"\nadapter = "a"\npath = "~nobody-here/p"\n',
            ":9: 'path' cannot be followed: Could not determine home",
        ),
        (
            '[[repository]]\nname = "k"\nadapter = "a"\npath = "a\\u0000b"\n',
            ":9: 'path' cannot be followed: embedded null byte",
        ),
        (
            '[[repository]]\nname = "k"\nadapter = "a"\npath = "loop"\n',
            ":9: 'path' cannot be followed: Symlink loop",
        ),
        ('[[repository]]\nname = 3\nadapter = "a"\npath = "p"\n', ":7: 'name' must be a string"),
    ],
)
def test_bad_stanzas(project: Project, more: str, message: str) -> None:
    project.write("WORKSPACE.toml", STANZA + more)
    (project.root / "loop").symlink_to("loop")

    with pytest.raises(LoadError) as caught:
        project.loader()

    assert message in str(caught.value)


VALUES = ("5", '""', "[]", "{}", "true", "[5]", '["a"]', '[["a"]]', "1979-05-27", '{ a = "b" }')


@pytest.mark.parametrize("key", ["name", "files", "kind", "tags", "left_out", "adapter", "licence"])
@pytest.mark.parametrize("value", VALUES)
def test_a_lock_of_other_types_is_refused_or_read(imported: Project, key: str, value: str) -> None:
    path = imported.root / "imports/kb.lock.toml"
    lines = path.read_text().splitlines()
    changed = (f"{key} = {value}" if line.startswith(f"{key} = ") else line for line in lines)
    path.write_text("\n".join(changed) + "\n")

    try:
        loader = imported.loader()
        loader.check(expand(loader, ["@kb//..."]))
        assert [task.name for task in loader.external.lock("kb").tasks()]
    except KabuildError as error:
        assert error.reason in {  # noqa: PT017 - any of these will do
            Reason.BAD_LOCK,
            Reason.BAD_LABEL,
            Reason.UNKNOWN_RULE,
            Reason.UNKNOWN_PACKAGE,
            Reason.MISSING_FILE,
        }


@pytest.mark.parametrize(
    "name",
    [
        *("../../OUT", "/etc", "a/../../b", "a//b", "level1/1_A/", ".hidden/a"),
        *("a b", "a#2", "a:b", "@b/c", "red\x1b[31m", "x" * 201, "/".join(["x" * 99] * 11)),
    ],
)
def test_a_task_has_the_name_of_a_package_whatever_is_asked_for(
    imported: Project, name: str
) -> None:
    """It becomes a path below out/."""
    _with('name = "level1/2_B"', f'name = "{name}"')(imported)

    for ask in ("@kb//...", "@kb//level1/1_A", "@kb//level2/..."):
        with pytest.raises(LoadError, match=r"imports/kb\.lock\.toml:16: '.*' is not a valid") as e:
            expand(imported.loader(), [ask])
        assert e.value.reason is Reason.BAD_LOCK
        assert "\x1b" not in str(e.value)


@pytest.mark.parametrize(
    "name", ["a", "level1/2_B.perf", "x" * 200, "/".join(["x" * 99] * 9), "1=+-"]
)
def test_tasks_may_have_any_name_that_a_package_may_have(imported: Project, name: str) -> None:
    _with('name = "level1/2_B"', f'name = "{name}"')(imported)

    assert f"@kb//{name}" in names(imported.loader(), "@kb//...")


def test_why_a_task_is_left_out_is_one_line_that_is_safe_to_print(imported: Project) -> None:
    _with("NEEDS_PACKAGE", r"\u001b[31mRED")(imported)
    _with("imports einops", r"a\n::error::x\u001b[2J")(imported)
    loader = imported.loader()

    absent = loader.external.lock("kb").task("level2/9_Z").left_out

    assert absent == LeftOut(r"\u001b[31mRED", r"a ::error::x\u001b[2J")
    with pytest.raises(UsageError, match=r"was not imported: \\u001b\[31mRED") as caught:
        loader.package("@kb/level2/9_Z")
    assert caught.value.hint == r"a ::error::x\u001b[2J"


@pytest.mark.parametrize(
    "path",
    ["//rules/../../secret", "//../secret", "//WORKSPACE.toml", "//mine/BUILD.toml", "///etc"],
)
def test_a_lock_names_shared_files_of_rules_only(imported: Project, path: str) -> None:
    imported.write("../secret", "secret")
    imported.task("mine")
    _with("//rules/shared.py", path)(imported)
    loader = imported.loader()

    with pytest.raises(LoadError, match=f"no file '{path}' in the task 'level1/1_A'") as caught:
        loader.check(expand(loader, ["@kb//..."]))

    assert caught.value.reason is Reason.MISSING_FILE


def test_a_link_out_of_the_checkout_is_no_original(imported: Project) -> None:
    imported.write("../secret", TEXT)
    path = imported.root / "../kb/src/level1/1_A.py"
    path.unlink()
    path.symlink_to("../../../secret")
    loader = imported.loader()

    with pytest.raises(LoadError, match=r"1_A\.py cannot be read: lies outside of the checkout"):
        loader.check(expand(loader, ["@kb//level1/1_A"]))

    (imported.root / "../kb/src/copy.py").write_text(TEXT)
    path.unlink()
    path.symlink_to("../copy.py")
    loader.check(expand(loader, ["@kb//level1/1_A"]))


def test_two_tasks_of_one_name_are_an_error(imported: Project) -> None:
    _with('name = "level1/2_B"', 'name = "level1/1_A"')(imported)

    with pytest.raises(LoadError, match=r"lock\.toml:16: two tasks are called 'level1/1_A'; .* 7"):
        expand(imported.loader(), ["@kb//level2/..."])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "it has no 'schema'"),
        (b"\xff\xfe", "the lock is not UTF-8"),
        (b"schema = 1\nadapter = 5\n[terms]\n", "'adapter' must hold only strings"),
    ],
)
def test_an_unreadable_lock_says_why(imported: Project, content: bytes, message: str) -> None:
    (imported.root / "imports/kb.lock.toml").write_bytes(content)

    with pytest.raises(LoadError) as caught:
        imported.loader().external.lock("kb")

    assert caught.value.reason is Reason.BAD_LOCK
    assert message in str(caught.value)
