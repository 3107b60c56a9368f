"""Odd machines and odd arguments: one clear error with the right exit code, never a traceback."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.testkit.cli import CliWorkspace, Ran
from tests.testkit.generated import generate

TASK = "//tasks/family0/t0"


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> CliWorkspace:
    directory = tmp_path_factory.mktemp("badday")
    generate(directory / "work", 2, shared=1, age=0)
    made = CliWorkspace(directory / "work", directory / "store")
    assert made.run("test", "//...").code == 0
    return made


@pytest.fixture(scope="module", autouse=True)
def waiting(workspace: CliWorkspace) -> Iterator[subprocess.Popen[str]]:
    """A call that waits for a pipe, 10 s and not for ever, while the other tests run."""
    os.mkfifo(workspace.root / "silent")
    process = subprocess.Popen(
        ["timeout", "120", *workspace.command("test", TASK, "--unseen_salt_file=silent")],
        cwd=workspace.root,
        env=workspace.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    yield process
    process.kill()
    process.communicate()


def spoken(
    workspace: CliWorkspace, *arguments: str, env: dict[str, str] | None = None, **how: Any
) -> Ran:
    """One call of the program in a process of its own, which never hangs."""
    done = subprocess.run(
        workspace.command(*arguments),
        check=False,
        **{
            "cwd": workspace.root,
            "env": {**workspace.environment(), **(env or {})},
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            "timeout": 120,
            "text": True,
            "errors": "surrogateescape",
            **how,
        },
    )
    return Ran(done.returncode, done.stdout or "", done.stderr or "")


def assert_plain(ran: Ran, code: int, *words: str) -> None:
    """One error, in words, and the code that belongs to it."""
    assert ran.code == code, (ran.code, ran.out, ran.err)
    assert "Traceback" not in ran.err
    assert "internal error" not in ran.err
    for word in words:
        assert word in ran.err, ran.err


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("test", TASK, "--jobs=99999999999"), 2, "range 1<=x<=4096"),
        (("test", TASK, "--jobs=" + "9" * 5000), 2, "jobs"),
        (("test", TASK, "--trials=" + "9" * 30), 2, "trials"),
        (("test", TASK, "--runs_per_test=99999999999"), 2, "range"),
        (("test", TASK, "--agent_rerun=" + "9" * 5000), 2, "agent_rerun"),
        (("test", TASK, "--devices=" + "9" * 5000), 2, "devices"),
        (("validate", TASK, "--samples=99999999999"), 2, "range"),
        (("replay", "x.kab", "--sample=99999999999"), 2, "range"),
        (("cache", "gc", "--max_size=" + "9" * 5000), 2, "size"),
        (("test", TASK, "--unseen_salt_file=/dev/zero"), 2, "is a device or a pipe"),
        (("test", TASK, "--unseen_salt_file=."), 2, "directory"),
        (("test", TASK, "--unseen_salt_file=sparse"), 2, "has more than 4,096 bytes"),
        (("test", TASK, "--solution=fifo"), 2, "neither a file nor a directory"),
        (("test", TASK, "--solution=loop"), 2, "Too many levels of symbolic links"),
        (("test", TASK, "--solution=" + "n" * 300), 2, "File name too long"),
        (("report", "n" * 300), 2, "more than 200 characters"),
        (("query", "loop"), 2, "no package '//loop'"),
        (("query", "loop/x"), 2, "no package '//loop/x'"),
        (("test", TASK, "--platform=" + "n" * 300), 2, "unknown platform"),
        (("verify", "fifo.kab"), 2, "is a device or a pipe"),
        (("replay", "fifo.kab"), 2, "is a device or a pipe"),
        (("report", "fifo.kab"), 2, "is a device or a pipe"),
        (("cache", "import", "fifo"), 2, "is not a regular file"),
        (("verify", "sparse", "--allowed_signers=fifo"), 2, "is not a regular file"),
        (("publish", TASK, "-o", "x.kab", "--sign=fifo"), 2, "is not a regular file"),
        (("test", f"//{'n' * 300}"), 2, "more than 200 characters"),
        (("test", "//" + "/".join("n" * 9 for _ in range(500))), 2, "1000 in all"),
        (("test", f"{TASK}:{'n' * 300}"), 2, "more than 200 characters"),
        (("test", f"{TASK}#{'9' * 5000}"), 2, "is no"),
        (("query", "(" * 3000 + TASK + ")" * 3000), 2, "nested in more than 50 levels"),
        (("query", f"deps({TASK}, {'9' * 5000})"), 2, "is not a depth"),
        (("test", TASK, "--solution=\udcff"), 2, "no file or directory"),
        (("test", "//\udcff"), 2, "is not a valid package path"),
        (("query", "\udcff"), 2, "is no"),
        (("info", "\udcff"), 2, "no info key"),
    ],
    ids=lambda value: str(value)[:40].encode("ascii", "backslashreplace").decode(),
)
def test_arguments_are_bounded(
    workspace: CliWorkspace, arguments: Sequence[str], code: int, words: str
) -> None:
    root = workspace.root
    for name in ("fifo", "fifo.kab"):
        with contextlib.suppress(FileExistsError):
            os.mkfifo(root / name)
    with (root / "sparse").open("wb") as file:
        file.truncate(1 << 40)
    if not (root / "loop").is_symlink():
        (root / "loop").symlink_to("loop")

    assert_plain(workspace.run(*arguments, timeout=60), code, words)


def test_a_long_query_is_answered(workspace: CliWorkspace) -> None:
    ran = spoken(workspace, "query", " + ".join([TASK] * 3000))

    assert (ran.code, ran.out) == (0, f"{TASK}:t0\n")


def test_a_huge_solution_is_refused_before_it_is_read(
    workspace: CliWorkspace, tmp_path: Path
) -> None:
    """Of a rule that takes one: that of the real tasks."""
    from tests.cli.conftest import declare

    own = CliWorkspace.make(tmp_path, workspace.store)
    declare(own, "double")
    many, deep = tmp_path / "many", tmp_path / "deep"
    many.mkdir()
    for number in range(10_001):
        (many / str(number)).mkdir()
    here = deep
    for _ in range(120):
        here /= "d"
    here.mkdir(parents=True)
    with (tmp_path / "large").open("wb") as file:
        file.truncate(1 << 40)
    for given in ("large", "many", "deep", "/"):
        ran = spoken(own, "test", "//double", "--gates=compile", f"--solution={tmp_path / given}")
        assert ran.code == (1 if given == "large" else 2), ran.err
        assert "Traceback" not in ran.err
        assert "internal" not in ran.err
    with contextlib.suppress(OSError):
        shutil.rmtree(deep)


def closed(*numbers: int) -> Callable[[], None]:
    def close() -> None:
        for number in numbers:
            os.close(number)

    return close


def limited(kind: int, value: int) -> Callable[[], None]:
    return lambda: resource.setrlimit(kind, (value, value))


ANEW = ("--gates=compile", "--nocache_test_results")


@pytest.mark.parametrize("numbers", [(0,), (1,), (2,), (1, 2), (0, 1, 2)])
@pytest.mark.parametrize("flags", [ANEW, ("--json",), ("--agent=nobody",)])
def test_closed_streams_change_no_verdict(
    workspace: CliWorkspace, numbers: tuple[int, ...], flags: tuple[str, ...]
) -> None:
    """Nor does a file of ours take their numbers, and get what is printed."""
    streams = {0: "stdin", 1: "stdout", 2: "stderr"}
    how = {streams[number]: None for number in numbers}
    ran = spoken(workspace, "test", TASK, *flags, preexec_fn=closed(*numbers), **how)

    assert_plain(ran, 2 if "--agent=nobody" in flags else 0)


@pytest.mark.parametrize("flags", [ANEW, (), ("--json",)])
def test_full_streams(workspace: CliWorkspace, flags: tuple[str, ...]) -> None:
    with Path("/dev/full").open("w") as full:
        out = spoken(workspace, "test", TASK, *flags, stdout=full)
        err = spoken(workspace, "test", TASK, *flags, stderr=full)

    assert_plain(out, 36, "error: stdout cannot be written: No space left on device")
    assert_plain(err, 0)


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_reader_that_leaves_changes_no_verdict(workspace: CliWorkspace, stream: str) -> None:
    (workspace.root / "tasks/family0/t1/kernel.hip").write_text("bad\n")
    for task, code in ((TASK, 0), ("//tasks/family0/t1", 3)):
        read, write = os.pipe()
        os.close(read)
        how: dict[str, Any] = {stream: write}
        ran = spoken(workspace, "test", task, *ANEW, **how)
        os.close(write)
        assert_plain(ran, code)


def test_a_removed_working_directory(workspace: CliWorkspace, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    for arguments in (("test", "//..."), ("info",), ("query", "//..."), ("cache", "stats")):
        script = f"rmdir {gone}; exec {' '.join(workspace.command(*arguments))}"
        gone.mkdir(exist_ok=True)
        done = subprocess.run(
            ["/bin/sh", "-c", script.replace("-m kabuild", "-P -m kabuild")],
            cwd=gone,
            env={**workspace.environment(), "PYTHONPATH": str(Path(__file__).parents[2])},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        ran = Ran(done.returncode, done.stdout, done.stderr)
        assert_plain(ran, 2, "error: the working directory was removed")


@pytest.mark.parametrize("files", [6, 8, 10, 12, 14, 16, 20, 24, 32])
def test_few_open_files(workspace: CliWorkspace, files: int) -> None:
    ran = spoken(workspace, "test", TASK, *ANEW, preexec_fn=limited(resource.RLIMIT_NOFILE, files))

    if ran.code:
        assert_plain(ran, 36)


@pytest.mark.parametrize("limit", [resource.RLIMIT_AS, resource.RLIMIT_DATA])
@pytest.mark.parametrize("megabytes", [*range(60, 130, 10), 200, 600])
def test_little_memory_for_threads(workspace: CliWorkspace, limit: int, megabytes: int) -> None:
    """It ends, whatever found no room: CPython would wait for ever for a thread that did not."""
    how: dict[str, Any] = {"preexec_fn": limited(limit, megabytes << 20)}

    ran = spoken(workspace, "test", TASK, *ANEW, **how)

    if ran.code:
        assert_plain(ran, 36)


def ignoring_children() -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)


def blocking_all() -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, signal.valid_signals())


@pytest.mark.parametrize(
    "inherit",
    [ignoring_children, blocking_all, *(partial(os.umask, mask) for mask in (0o777, 0o177, 0o077))],
)
def test_what_a_parent_leaves_changes_no_verdict(
    workspace: CliWorkspace, inherit: Callable[[], None]
) -> None:
    ran = spoken(workspace, "test", TASK, *ANEW, preexec_fn=inherit)

    assert_plain(ran, 0)


def without_override() -> None:
    """Give up CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH: PR_CAPBSET_DROP, before exec."""
    for capability in (1, 2):
        ctypes.CDLL(None).prctl(24, capability, 0, 0, 0)


def test_another_users_directory_is_left_out(tmp_path: Path) -> None:
    """Without the right of root to read everything."""
    generate(tmp_path / "work", 1, shared=1, age=0)
    secret = tmp_path / "work/tasks/secret"
    secret.mkdir()
    workspace = CliWorkspace(tmp_path / "work", tmp_path / "store")
    how: dict[str, Any] = {"preexec_fn": without_override} if os.geteuid() == 0 else {}
    secret.chmod(0)
    try:
        for arguments in (("query", "//..."), ("test", "//...", "--gates=compile")):
            ran = spoken(workspace, *arguments, env={"HOME": "/root"}, **how)
            assert_plain(ran, 0, "warning: skipped tasks/secret: Permission denied")
            assert "//tasks/family0/t0" in ran.out
        kernel = tmp_path / "work/tasks/family0/t0/kernel.hip"
        kernel.write_bytes(b"other\n")
        kernel.chmod(0)
        ran = spoken(workspace, "test", "//...", "--gates=compile", **how)
        assert ran.code == 1
        assert "kernel.hip cannot be read: Permission denied" in ran.out
        assert "Traceback" not in ran.err
        (tmp_path / "work/tasks/family0/t0/BUILD.toml").chmod(0)
        ran = spoken(workspace, "query", "//...", **how)
        assert_plain(ran, 1, "tasks/family0/t0/BUILD.toml: cannot be read: Permission denied")
    finally:
        secret.chmod(0o755)


@pytest.mark.parametrize(
    "env",
    [
        {"HOME": ""},
        {"HOME": "/dev/null"},
        {"HOME": "/proc/none/home", "KABUILD_CACHE": ""},
        {"HOME": "\udcff"},
        {"TERM": "nonsense"},
        {"TERM": ""},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"PYTHONIOENCODING": "ascii"},
        {"PYTHONIOENCODING": "utf-16"},
        {"TMPDIR": "/nonexistent"},
        {"XDG_CACHE_HOME": "relative"},
        {"KABUILD_CACHE": "/dev/null"},
        {"KABUILD_CACHE": "/proc/nothing"},
        {"KABUILD_CACHE": "a" * 300},
        {"KABUILD_CACHE": "~nobody-of-that-name/x"},
        {"KABUILD_CACHE_SIZE": "lots"},
        {"PATH": ""},
    ],
    ids=str,
)
def test_odd_environments(workspace: CliWorkspace, env: dict[str, str]) -> None:
    odd = CliWorkspace(workspace.root, workspace.store, env)
    for arguments in (("test", TASK, *ANEW), ("cache", "stats"), ("info",)):
        ran = odd.run(*arguments, timeout=60)
        assert_plain(ran, ran.code)
        assert ran.code in {0, 2, 36}, ran.err
        assert ran.err.count("rror: ") == (ran.code != 0)


def test_an_empty_argument_of_report_is_named(workspace: CliWorkspace) -> None:
    assert_plain(spoken(workspace, "report", ""), 2, "an argument is empty", "results can be:")


def test_a_target_without_actions_here_says_so(workspace: CliWorkspace) -> None:
    ran = spoken(workspace, "build", "//toolchains/hip:cuda_launch_filter", "--platform=cpu")

    assert ran.code == 0
    said = "nothing to build: //toolchains/hip:cuda_launch_filter has no actions on platform cpu"
    assert said in ran.out
    assert "other platforms (--platform=NAME): cuda, rocm" in ran.out


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ('[defaults]\npolicy = "best"', ":3: unknown scoring policy 'best'"),
        ('[scoring]\npolicy = "best"', ":3: unknown scoring policy 'best'"),
        ('[defaults]\nagent = "nobody"', ":3: no agent //toolchains/agents:nobody"),
        ('[defaults]\nplatform = "xpu"', ":3: unknown platform 'xpu'"),
    ],
)
def test_a_wrong_default_is_named_with_its_line(
    workspace: CliWorkspace, table: str, said: str
) -> None:
    file = workspace.root / "WORKSPACE.toml"
    before = file.read_text()
    file.write_text(f'name = "test"\n{table}\n')
    try:
        ran = spoken(workspace, "test", "//...")
    finally:
        file.write_text(before)

    assert ran.code in {1, 2}
    assert f"WORKSPACE.toml{said}" in ran.err


@pytest.mark.parametrize("command", ["report", "compare"])
def test_a_directory_named_like_a_bundle_is_none(workspace: CliWorkspace, command: str) -> None:
    (workspace.root / "d.kab").mkdir(exist_ok=True)
    others = ["d.kab"] if command == "compare" else []

    ran = spoken(workspace, command, "d.kab", *others)

    assert_plain(ran, 2, "d.kab is neither a bundle nor a directory with results")


def test_a_pipe_that_no_process_writes_to_is_refused(waiting: subprocess.Popen[str]) -> None:
    out, err = waiting.communicate(timeout=120)

    assert_plain(Ran(waiting.returncode, out, err), 2, "no process writes to this pipe")
