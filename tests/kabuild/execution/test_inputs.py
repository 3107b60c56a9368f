"""From artifacts to input roots."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from kabuild.base.errors import InfraError, LoadError, Reason
from kabuild.execution import Inputs, MissingOutputError
from kabuild.model.action import Artifact, Literal, Output, Source, Toolchain
from kabuild.model.digest import Digest
from kabuild.model.result import ActionResult, OutputFile
from kabuild.store import BlobMissingError
from tests.testkit.actions import command
from tests.testkit.index import NoIndex
from tests.testkit.store import MemoryCas


@pytest.fixture
def inputs(tmp_path: Path) -> Inputs:
    (tmp_path / "builtin").mkdir()
    return Inputs({"workspace": tmp_path, "builtin": tmp_path / "builtin"}, NoIndex())


def paths(
    inputs: Inputs, wanted: dict[str, Artifact], produced: dict[str, ActionResult] | None = None
) -> dict[str, str]:
    """Path -> content of what an action would find."""
    cas = MemoryCas()
    for data in (b"made", b"deep"):
        cas.put(data)
    root = inputs.root(command("a", inputs=wanted), produced or {})
    inputs.supply(root, cas)
    return {path: cas.get(node.digest).decode() for path, node in root.walk()}


def write(path: Path, text: str = "x", mode: int = 0o644) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return path


def test_every_kind_of_artifact_finds_its_place(inputs: Inputs, tmp_path: Path) -> None:
    write(tmp_path / "tasks/k.hip", "kernel")
    write(tmp_path / "builtin/tools/gate.py", "gate")
    write(tmp_path / "builtin/tools/lib/a.py", "a")
    produced = {
        "//t:c": ActionResult(
            0,
            (
                OutputFile("k.so", Digest.of(b"made")),
                OutputFile("tree/d/x", Digest.of(b"deep")),
            ),
        )
    }

    found = paths(
        inputs,
        {
            "k.hip": Source("tasks/k.hip"),
            "tools": Source("tools", "builtin"),
            "tools/extra.py": Literal(b"extra"),
            "absolute": Source(str(tmp_path / "tasks/k.hip"), "user"),
            "bin/k.so": Output("//t:c", "k.so"),
            "bin/tree": Output("//t:c", "tree"),
        },
        produced,
    )

    assert found == {
        "absolute": "kernel",
        "bin/k.so": "made",
        "bin/tree/d/x": "deep",
        "k.hip": "kernel",
        "tools/extra.py": "extra",
        "tools/gate.py": "gate",
        "tools/lib/a.py": "a",
    }


def test_fingerprints_of_toolchains_are_inputs_and_their_paths_are_not(inputs: Inputs) -> None:
    def root(home: str) -> Digest:
        chain = Toolchain("cc", "compiler", b'{"v":1}\n', home=home, mounts=(home,))
        return inputs.root(command("a", toolchains=[chain]), {}).digest

    chain = Toolchain("cc", "compiler", b'{"v":1}\n', home="/x")
    found = dict(inputs.root(command("a", toolchains=[chain]), {}).walk())
    assert found[".kabuild/toolchains/cc.json"].digest == Digest.of(b'{"v":1}\n')
    assert root("/opt/cc") == root("/home/me/cc")


def test_a_directory_is_taken_without_what_tools_leave(inputs: Inputs, tmp_path: Path) -> None:
    write(tmp_path / "d/a.py")
    write(tmp_path / "d/__pycache__/a.pyc")
    write(tmp_path / "d/.git/HEAD")
    write(tmp_path / "d/e/__pycache__/b.pyc")
    write(tmp_path / "d/.hidden")

    assert set(paths(inputs, {"d": Source("d")})) == {"d/a.py", "d/.hidden"}


def test_the_x_bit_is_in_the_key_and_times_are_not(tmp_path: Path) -> None:
    def digest() -> Digest:
        fresh = Inputs({"workspace": tmp_path}, NoIndex())
        return fresh.root(command("a", inputs={"f": Source("f")}), {}).digest

    file = write(tmp_path / "f")
    plain = digest()
    os.utime(file, (1, 1))
    file.chmod(0o600)
    assert digest() == plain
    file.chmod(0o755)
    assert digest() != plain


def test_links_inside_are_followed(inputs: Inputs, tmp_path: Path) -> None:
    write(tmp_path / "d/real/file", "content")
    (tmp_path / "d/link").symlink_to("real/file")
    (tmp_path / "d/other").symlink_to("real")

    assert paths(inputs, {"d": Source("d")}) == {
        "d/link": "content",
        "d/other/file": "content",
        "d/real/file": "content",
    }


@pytest.mark.parametrize("target", ["/etc/passwd", "../../outside", "../d-sibling/x"])
def test_links_that_leave_their_directory_are_refused(
    inputs: Inputs, tmp_path: Path, target: str
) -> None:
    write(tmp_path / "d/file")
    write(tmp_path / "d-sibling/x")
    (tmp_path / "d/link").symlink_to(target)

    with pytest.raises(LoadError, match=r"'link' is a link to .*, outside") as caught:
        paths(inputs, {"d": Source("d")})
    assert caught.value.reason is Reason.ESCAPING_PATH


def test_a_source_that_is_a_link_must_stay_in_the_workspace(inputs: Inputs, tmp_path: Path) -> None:
    write(tmp_path / "real", "content")
    (tmp_path / "fine").symlink_to("real")
    (tmp_path / "evil").symlink_to("/etc/passwd")

    assert paths(inputs, {"f": Source("fine")}) == {"f": "content"}
    with pytest.raises(LoadError, match="evil"):
        paths(inputs, {"f": Source("evil")})


def test_a_link_to_nothing_and_a_link_in_a_circle_are_refused(
    inputs: Inputs, tmp_path: Path
) -> None:
    write(tmp_path / "dangling/file")
    (tmp_path / "dangling/link").symlink_to("absent")
    write(tmp_path / "circle/sub/file")
    (tmp_path / "circle/sub/up").symlink_to("..")

    with pytest.raises(LoadError, match="dangling link"):
        paths(inputs, {"d": Source("dangling")})
    with pytest.raises(LoadError, match="directory around it"):
        paths(inputs, {"d": Source("circle")})


def test_what_is_neither_file_nor_directory_is_refused(inputs: Inputs, tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    os.mkfifo(tmp_path / "d/pipe")

    for source in ("d", "d/pipe"):
        with pytest.raises(LoadError, match="neither a file nor a directory"):
            paths(inputs, {"d": Source(source)})


@pytest.mark.parametrize("source", ["d/huge.py", "d"])
def test_a_file_that_takes_long_to_hash_is_refused(
    inputs: Inputs, tmp_path: Path, source: str
) -> None:
    write(tmp_path / "d/huge.py")
    os.truncate(tmp_path / "d/huge.py", 40 << 30)

    with pytest.raises(LoadError, match=r"d/huge.py' is too large: it has 40.0 GB") as caught:
        paths(inputs, {"d": Source(source)})
    assert caught.value.reason is Reason.TOO_LARGE
    assert "at most 1.0 GB" in str(caught.value)


@pytest.mark.parametrize("source", ["absent", "file/absent"])
def test_a_missing_source_is_named(inputs: Inputs, tmp_path: Path, source: str) -> None:
    write(tmp_path / "file")

    with pytest.raises(LoadError, match=f"no file '{source}' in the workspace") as caught:
        paths(inputs, {"a": Source(source)})
    assert caught.value.reason is Reason.MISSING_FILE
    assert caught.value.hint == ""


def test_a_missing_source_of_a_repository_names_it(tmp_path: Path) -> None:
    inputs = Inputs({"@kb": tmp_path}, NoIndex())

    with pytest.raises(LoadError) as caught:
        paths(inputs, {"a": Source("absent", "@kb")})
    assert caught.value.message == "no file 'absent' in @kb"


def test_a_missing_source_is_suggested(inputs: Inputs, tmp_path: Path) -> None:
    """By its first directory that is not there."""
    write(tmp_path / "solutions/expert/a.hip")

    with pytest.raises(LoadError) as caught:
        paths(inputs, {"a": Source("solutions/exprt/a.hip")})
    assert caught.value.hint == "did you mean 'expert'?"


def test_a_missing_output_names_its_producer(inputs: Inputs) -> None:
    for produced in ({}, {"//t:c": ActionResult(0)}):
        with pytest.raises(MissingOutputError, match=r"//t:c did not make 'k\.so'") as caught:
            paths(inputs, {"k.so": Output("//t:c", "k.so")}, produced)
        assert caught.value.producer == "//t:c"


def test_two_inputs_at_one_path_are_refused(inputs: Inputs, tmp_path: Path) -> None:
    write(tmp_path / "d/f", "from the directory")

    with pytest.raises(LoadError, match="//t:a: two different inputs at 'd/f'"):
        paths(inputs, {"d": Source("d"), "d/f": Literal(b"another")})


def test_content_that_changed_before_it_was_stored_is_refused(
    inputs: Inputs, tmp_path: Path
) -> None:
    file = write(tmp_path / "f", "before")
    root = inputs.root(command("a", inputs={"f": Source("f")}), {})
    cas = MemoryCas()
    for change in (lambda: file.write_text("after"), file.unlink):
        change()
        with pytest.raises(InfraError, match="changed while") as caught:
            inputs.supply(root, cas)
        assert caught.value.reason is Reason.INPUT_CHANGED


def test_an_output_that_is_gone_from_the_store_is_noticed(inputs: Inputs) -> None:
    produced = {"//t:c": ActionResult(0, (OutputFile("x", Digest.of(b"gone")),))}
    root = inputs.root(command("a", inputs={"x": Output("//t:c", "x")}), produced)

    with pytest.raises(BlobMissingError):
        inputs.supply(root, MemoryCas())


@pytest.mark.parametrize("change", ["edit", "remove", "add", "mode"])
def test_a_source_that_changes_during_the_run_is_noticed(
    inputs: Inputs, tmp_path: Path, change: str
) -> None:
    file = write(tmp_path / "d/f", "before")
    action = command("a", inputs={"d": Source("d")})
    inputs.root(action, {})
    before = inputs.observe(action)
    inputs.check_unchanged(before)
    changes: dict[str, Callable[[], object]] = {
        "edit": lambda: file.write_text("after"),
        "remove": file.unlink,
        "add": lambda: write(tmp_path / "d/g"),
        "mode": lambda: file.chmod(0o755),
    }
    changes[change]()

    with pytest.raises(InfraError, match=r"d/[fg]' changed while") as caught:
        inputs.check_unchanged(before)
    assert caught.value.reason is Reason.INPUT_CHANGED


def test_a_source_that_was_only_touched_has_not_changed(inputs: Inputs, tmp_path: Path) -> None:
    """A new time, a further link, the same content again: nobody is interrupted for that."""
    file = write(tmp_path / "d/f", "same")
    action = command("a", inputs={"d": Source("d")})
    inputs.root(action, {})
    before = inputs.observe(action)

    file.write_text("same")
    os.utime(file, (1, 1))
    (tmp_path / "linked").hardlink_to(file)

    inputs.check_unchanged(before)


def test_a_change_before_the_run_is_no_concern_of_it(inputs: Inputs, tmp_path: Path) -> None:
    """One edit during a long build stops one action at most, not all that follow."""
    file = write(tmp_path / "f", "first")
    action = command("a", inputs={"f": Source("f")})
    cas = MemoryCas()
    inputs.supply(inputs.root(action, {}), cas)

    file.write_text("second")
    before = inputs.observe(action)
    root = inputs.root(action, {})
    inputs.supply(root, cas)
    inputs.check_unchanged(before)

    assert cas.get(next(node.digest for _, node in root.walk())) == b"first"


def test_a_name_that_is_no_text_is_refused(inputs: Inputs, tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    with open(os.fsencode(tmp_path / "d") + b"/\xff", "wb"):
        pass

    with pytest.raises(LoadError, match="not printable UTF-8"):
        paths(inputs, {"d": Source("d")})
