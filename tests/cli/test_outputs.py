"""What flags name to be written: devices, pipes and links are written through, never replaced.

Every output of every command: a flag that is new has to be called here, or the first test fails.
The devices are nodes of a test's own; nothing here goes near those of the machine.
"""

from __future__ import annotations

import json
import os
import stat
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from kabuild.cli.program import COMMANDS, cli
from kabuild.cli.types import InputPath, OutputFile
from tests.testkit.cli import CliWorkspace
from tests.testkit.generated import generate

TASK = "//tasks/family0/t0"
CALLS: dict[tuple[str, str], tuple[str, ...]] = {
    ("test", "explain"): ("test", TASK, "--explain={}"),
    ("test", "events"): ("test", TASK, "--events={}"),
    ("test", "summary"): ("test", TASK, "--summary={}"),
    ("build", "explain"): ("build", TASK, "--explain={}"),
    ("build", "events"): ("build", TASK, "--events={}"),
    ("build", "summary"): ("build", TASK, "--summary={}"),
    ("report", "output"): ("report", TASK, "--format=csv", "--output={}"),
    ("publish", "output"): ("publish", TASK, "--output={}"),
    ("cache export", "file"): ("cache", "export", "{}"),
    ("model profile", "output"): ("model", "profile", "net.py", "--output={}"),
}
MODEL = """\
import torch


def build():
    return torch.nn.Linear(4, 4)


def inputs(generator):
    return (torch.randn(2, 4, generator=generator),)
"""
NULL, FULL = os.makedev(1, 3), os.makedev(1, 7)


def commands() -> Iterator[tuple[str, click.Command]]:
    """All commands, those of groups by both words."""
    for name in COMMANDS:
        command = cli.get_command(click.Context(cli), name)
        assert command
        if isinstance(command, click.Group):
            yield from ((f"{name} {sub}", item) for sub, item in command.commands.items())
        else:
            yield name, command


def test_every_flag_has_a_bounded_type_and_every_output_is_called_here() -> None:
    outputs = set()
    for name, command in commands():
        for param in command.params:
            kind = param.type
            where = f"{name}: {param.name}"
            if isinstance(kind, OutputFile):
                outputs.add((name, str(param.name)))
            elif isinstance(kind, click.IntRange):
                assert kind.max is not None, where
            else:
                assert isinstance(kind, InputPath) or not isinstance(kind, click.Path), where
                assert not isinstance(kind, click.File), where
                assert kind not in {click.INT, click.FLOAT}, where
    assert outputs == CALLS.keys()


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> CliWorkspace:
    directory = tmp_path_factory.mktemp("outputs")
    generate(directory / "work", 1, shared=1, age=0)
    workspace = CliWorkspace(directory / "work", directory / "store")
    assert workspace.run("test", TASK).code == 0
    workspace.write("net.py", MODEL)
    assert workspace.run("model", "profile", "net.py").code == 0
    return workspace


def call(workspace: CliWorkspace, words: tuple[str, ...], path: Path) -> Any:
    return workspace.run(*(word.format(path) for word in words))


def place(tmp_path: Path, words: tuple[str, ...]) -> Path:
    """Where the thing lies; bundles have a suffix."""
    return tmp_path / ("thing.kab" if words[0] == "publish" else "thing")


@pytest.mark.parametrize("words", CALLS.values(), ids=lambda words: "-".join(words[:3]))
def test_links_and_pipes_are_written_through(
    judged: CliWorkspace, tmp_path: Path, words: tuple[str, ...]
) -> None:
    link, real = place(tmp_path, words), tmp_path / "real"
    for before in (None, b"before"):
        if before is not None:
            link.unlink()
            real.write_bytes(before)
            real.chmod(0o600)
        link.symlink_to("real")
        assert call(judged, words, link).code == 0
        assert link.is_symlink()
        assert real.read_bytes() not in {b"", b"before"}
    assert stat.S_IMODE(real.stat().st_mode) == 0o600

    link.unlink()
    os.mkfifo(link)
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(link.read_bytes()))
    reader.start()
    assert call(judged, words, link).code == 0
    reader.join(120)
    assert len(got[0]) > 10
    assert link.is_fifo()
    assert not [path for path in tmp_path.iterdir() if path not in {link, real}]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes devices")
@pytest.mark.parametrize("words", CALLS.values(), ids=lambda words: "-".join(words[:3]))
def test_devices_are_written_through(
    judged: CliWorkspace, tmp_path: Path, words: tuple[str, ...]
) -> None:
    for number, code in ((NULL, 0), (FULL, 36)):
        node = place(tmp_path, words)
        os.mknod(node, stat.S_IFCHR | 0o666, number)
        ran = call(judged, words, node)
        assert ran.code == code, ran.err
        assert stat.S_ISCHR(node.stat().st_mode)
        assert node.stat().st_rdev == number
        if code:
            assert ran.err.splitlines()[-1].endswith("No space left on device")
            assert ran.err.count("error") == 1
        node.unlink()
        assert not list(tmp_path.iterdir())


def test_stdout_by_its_name_is_stdout(judged: CliWorkspace, tmp_path: Path) -> None:
    """Through a link of ours: a mistake would replace this one, and no other."""
    link = tmp_path / "stdout"
    link.symlink_to("/proc/self/fd/1")
    command = judged.command("report", TASK, "--format=json", f"--output={link}")
    piped = subprocess.run(
        command, cwd=judged.root, env=judged.environment(), capture_output=True, check=True
    )
    with (tmp_path / "file").open("w") as file:
        file.write("kept\n")
        file.flush()
        subprocess.run(command, cwd=judged.root, env=judged.environment(), stdout=file, check=True)
        file.seek(0, os.SEEK_END)
        file.write("\nbehind\n")

    assert link.is_symlink()
    assert json.loads(piped.stdout)
    kept, *report, behind = (tmp_path / "file").read_text().splitlines()
    assert (kept, behind) == ("kept", "behind")
    assert json.loads("\n".join(report))


@pytest.mark.parametrize("words", CALLS.values(), ids=lambda words: "-".join(words[:3]))
def test_what_cannot_be_written_is_told_before_anything_runs(
    judged: CliWorkspace, tmp_path: Path, words: tuple[str, ...]
) -> None:
    file, loop = tmp_path / "file", tmp_path / "loop"
    file.touch()
    loop.symlink_to("loop")
    suffix = ".kab" if words[0] == "publish" else ""
    for path in (tmp_path / f"dir{suffix}", file / f"below{suffix}", loop, tmp_path / ("n" * 300)):
        if path.name.startswith("dir"):
            path.mkdir()
        ran = call(judged, words, path)
        assert ran.code == 2, (path, ran.err)
        assert ran.err.count("rror: ") == 1
        assert "actions" not in ran.out


@pytest.mark.parametrize("words", CALLS.values(), ids=" ".join)
def test_a_dash_is_no_file(judged: CliWorkspace, words: tuple[str, ...]) -> None:
    ran = judged.run(*(word.format("-") for word in words))

    assert ran.code == 2
    assert "'-' is not standard output here: write /dev/stdout, or ./- for a file" in ran.err
    assert not (judged.root / "-").exists()


def test_an_output_is_neither_another_one_nor_an_input(
    judged: CliWorkspace, tmp_path: Path
) -> None:
    kernel, link, new = (tmp_path / name for name in ("mine.hip", "link", "new"))
    kernel.write_text("// mine\n")
    link.symlink_to(kernel)
    for flags in (
        (f"--solution={kernel}", f"--explain={kernel}"),
        (f"--explain={link}", f"--solution={kernel}"),
        (f"--events={new}", f"--summary={tmp_path}/./new"),
    ):
        ran = judged.run("test", TASK, *flags)
        assert ran.code == 2
        assert " are one file: " in ran.err
    assert kernel.read_text() == "// mine\n"

    bundle = tmp_path / "a.kab"
    assert judged.run("publish", TASK, "-o", str(bundle)).code == 0
    whole = bundle.read_bytes()
    ran = judged.run("report", str(bundle), "--format=csv", "-o", str(bundle))
    assert ran.code == 2
    assert "is one of the results to show" in ran.err
    assert bundle.read_bytes() == whole


READ = (
    ("test", TASK, "--explain={}"),
    ("test", TASK, "--events={}"),
    ("test", TASK, "--summary={}"),
    ("test", "//tasks/family0/t0", "--solution=tasks/family0/t0", "--explain={}"),
    ("build", TASK, "--events={}"),
    ("report", TASK, "--format=csv", "--output={}"),
    ("cache", "export", "{}", TASK),
    ("cache", "export", "{}"),
    ("model", "profile", "net.py", "--output={}"),
)
SOURCES = ("tasks/family0/t0/kernel.hip", "tasks/family0/t1/kernel.hip", "WORKSPACE.toml")


@pytest.mark.parametrize("words", READ, ids=lambda words: "-".join(words[:3]))
def test_an_output_is_no_source(tmp_path: Path, words: tuple[str, ...]) -> None:
    """Neither of the requested target nor of another one, by no name; nothing is changed."""
    generate(tmp_path / "work", 2, shared=1, age=0)
    workspace = CliWorkspace(tmp_path / "work", tmp_path / "store")
    workspace.write("net.py", MODEL)
    link = tmp_path / "link"
    link.symlink_to(workspace.root / SOURCES[0])
    for path in (*SOURCES, f"tasks/../{SOURCES[0]}", str(link)):
        before = (workspace.root / path).read_bytes()
        ran = workspace.run(*(word.format(path) for word in words))
        assert ran.code == 2, ran.out + ran.err
        assert ran.err.startswith("error: ")
        assert f"'{path}' is a " in ran.err
        assert (workspace.root / path).read_bytes() == before
        assert not ran.executed


def test_an_output_may_lie_beside_sources(tmp_path: Path) -> None:
    generate(tmp_path / "work", 1, shared=1, age=0)
    workspace = CliWorkspace(tmp_path / "work", tmp_path / "store")
    for path in ("why.txt", "tasks/family0/t0/why.txt", "out/why.txt"):
        for name in ("explain", "events", "summary", "explain"):
            ran = workspace.run("test", TASK, f"--{name}={path}")
            assert ran.code == 0, ran.err
    lines = (workspace.root / "tasks/family0/t0/why.txt").read_text()
    assert lines.startswith("//tasks/family0/t0")


def test_a_directory_that_is_read_takes_no_output(tmp_path: Path) -> None:
    generate(tmp_path / "work", 1, shared=1, age=0)
    workspace = CliWorkspace(tmp_path / "work", tmp_path / "store")
    ran = workspace.run("test", TASK, "--explain=rules/copied/data/why.txt")
    assert ran.code == 2
    assert "lies in a directory that the build reads: " in ran.err


def test_events_replace_other_files_only_once_these_are_no_sources(tmp_path: Path) -> None:
    """A request that cannot be planned leaves them alone; an earlier stream it ends."""
    generate(tmp_path / "work", 1, shared=1, age=0)
    workspace = CliWorkspace(tmp_path / "work", tmp_path / "store")
    notes = workspace.write("notes", "mine\n")
    assert workspace.run("test", "//no/such", "--events=notes").code == 2
    assert notes.read_text() == "mine\n"
    for target, last in ((TASK, "finished"), ("//no/such", "stream")):
        workspace.run("test", target, "--events=notes")
        lines = [json.loads(line) for line in notes.read_text().splitlines()]
        assert (lines[0]["event"], lines[-1]["event"]) == ("stream", last)


def test_two_outputs_may_go_to_one_device_or_stream(judged: CliWorkspace) -> None:
    assert judged.run("test", TASK, "--explain=/dev/null", "--events=/dev/null").code == 0
    assert judged.run("test", TASK, "--explain=/dev/stdout", "--events=/dev/stdout").code == 0


def test_a_pipe_without_a_reader_is_no_silence(judged: CliWorkspace, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")

    ran = judged.run("test", TASK, f"--events={tmp_path / 'pipe'}", timeout=120)

    assert ran.code == 2
    assert ran.err == f"error: --events: {tmp_path / 'pipe'}: no process reads this pipe\n"


def test_a_lock_file_that_is_a_link_stays_one(tmp_path: Path) -> None:
    workspace = CliWorkspace.make(tmp_path)
    (workspace.root / "toolchains").mkdir()
    (workspace.root / "toolchains/lock.toml").symlink_to(tmp_path / "elsewhere.toml")
    home = tmp_path / "home"
    (home / "bin").mkdir(parents=True)
    (home / "bin/tool").write_text("x")
    workspace.write(
        "toolchains/mine/BUILD.toml",
        f'[[toolchain]]\nname = "mine"\nrole = "x"\nlocal = "{home}"\n',
    )

    ran = workspace.run("toolchain", "pin", "mine", f"--from={home}")

    assert ran.code == 0, ran.err
    assert (workspace.root / "toolchains/lock.toml").is_symlink()
    assert "mine" in (tmp_path / "elsewhere.toml").read_text()


@pytest.mark.parametrize("kind", [InputPath(), OutputFile()])
def test_a_tilde_is_the_users_home(
    kind: InputPath | OutputFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shells leave that of ``--flag=~/file`` as it is."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)

    assert kind.convert("~/key", None, None) == tmp_path / "key"
    assert kind.convert("a~b", None, None) == Path("a~b")
