"""The command starts at once: it imports what it needs and nothing of what candidates need."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kabuild.cli.program import COMMANDS
from tests.testkit.cli import PROGRAM, CliWorkspace, Ran

from .conftest import KERNEL

JUDGING = {"torch", "triton", "numpy", "grpc", "ziglang"}
HEAVY = {*JUDGING, "rich", "structlog", "psutil", "asyncio"}
MODULES = """\
import atexit, json, sys
report = sys.argv.pop(1)
atexit.register(lambda: open(report, "w").write(json.dumps(sorted(sys.modules))))
from kabuild.cli.main import main
main()
"""

HELP = """\
import json, os, sys, tempfile
from kabuild.cli.main import main
found = {}
for command in sys.argv[1:]:
    streams = [tempfile.TemporaryFile() for _ in range(2)]
    if not (child := os.fork()):
        for number, stream in enumerate(streams, 1):
            os.dup2(stream.fileno(), number)
        sys.argv[1:] = [command, "--help"]
        main()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    texts = [os.pread(stream.fileno(), 1 << 20, 0).decode() for stream in streams]
    found[command] = [code, *texts]
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def explained(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Ran]:
    """What each command says with --help, in a process that has imported no command before."""
    workspace = CliWorkspace.make(tmp_path_factory.mktemp("explained"))
    done = subprocess.run(
        [sys.executable, "-c", HELP, *COMMANDS],
        cwd=workspace.root,
        env=workspace.environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    return {command: Ran(*said) for command, said in json.loads(done.stdout).items()}


def modules_of(workspace: CliWorkspace, *arguments: str) -> set[str]:
    """The modules that one successful call imported."""
    report = workspace.root.parent / "modules.json"
    done = subprocess.run(
        [sys.executable, "-c", MODULES, str(report), *arguments],
        cwd=workspace.root,
        env=workspace.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return set(json.loads(report.read_text()))


@pytest.mark.parametrize(
    "arguments", [("--help",), ("version",), ("query", "//..."), ("info",), ("test", "--help")]
)
def test_a_question_imports_nothing_heavy(task: CliWorkspace, arguments: tuple[str, ...]) -> None:
    assert not modules_of(task, *arguments) & HEAVY


def test_help_does_not_even_import_the_commands(workspace: CliWorkspace) -> None:
    modules = modules_of(workspace, "--help")

    assert {name for name in modules if name.startswith("kabuild.")} == {
        *("kabuild.base", "kabuild.base.errors", "kabuild.base.suggest"),
        *("kabuild.base.lazy", "kabuild.base.printing", "kabuild.base.umask"),
        "kabuild.base.version",
        *(
            "kabuild.cli",
            "kabuild.cli.interrupts",
            "kabuild.cli.main",
            "kabuild.cli.program",
            "kabuild.cli.streams",
        ),
    }


def test_a_cached_build_imports_nothing_heavy(quick: CliWorkspace) -> None:
    gates = "--gates=compile"
    assert quick.run("test", "//...", gates).code == 0

    assert not modules_of(quick, "test", "//...", gates) & HEAVY


def test_a_build_imports_no_torch_either(quick: CliWorkspace) -> None:
    """Judging does, in processes of its own."""
    quick.write("double/solutions/expert/double.hip", KERNEL.replace("256", "64"))

    assert modules_of(quick, "build", "//double:double.compile") & JUDGING == set()


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_every_command_explains_itself_with_an_example(
    workspace: CliWorkspace, explained: dict[str, Ran], command: str, flag: str
) -> None:
    ran = explained[command] if flag == "--help" else workspace.run(command, flag)

    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith(f"Usage: kabuild {command} ")
    lines = [line.strip() for line in ran.out.splitlines()]
    assert any(line.startswith(f"kabuild {command}") for line in lines[1:])


def test_the_program_names_its_commands(workspace: CliWorkspace) -> None:
    ran = workspace.start("-h")

    assert (ran.code, ran.err) == (0, "")
    for command in COMMANDS:
        assert f"\n  {command} " in ran.out


def test_without_arguments_it_explains_itself(workspace: CliWorkspace) -> None:
    ran = workspace.start()

    assert ran.code == 2
    assert "Usage: kabuild" in ran.out + ran.err
    assert "Traceback" not in ran.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("test",),
            """error: missing argument 'PATTERNS...'
  for all tasks: kabuild test //...
  see 'kabuild test --help'
""",
        ),
        (
            ("test", "//...", "--jbos=2"),
            "error: no option '--jbos'\n  did you mean '--jobs'?\n  see 'kabuild test --help'\n",
        ),
        (("tset",), "error: no command 'tset'; did you mean 'test'?\n  see 'kabuild --help'\n"),
        (
            ("test", "//...", "-j", "two"),
            """error: invalid value for '--jobs' / '-j': must be an integer, got 'two'
  see 'kabuild test --help'
""",
        ),
    ],
)
def test_a_wrong_command_line_gets_one_error_and_what_to_do(
    workspace: CliWorkspace, words: tuple[str, ...], said: str
) -> None:
    ran = workspace.run(*words)

    assert (ran.code, ran.out, ran.err) == (2, "", said)


def test_it_runs_as_a_module_and_as_a_script(workspace: CliWorkspace) -> None:
    script = Path(sys.executable).parent / "kabuild"
    said = [
        subprocess.run([*call, "version"], capture_output=True, text=True, check=True).stdout
        for call in (PROGRAM, (str(script),))
    ]

    assert said[0] == said[1]
    assert said[0].startswith("kabuild ")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("kabuild te", ["test"]),
        ("kabuild ", list(COMMANDS)),
        ("kabuild test --test_out", ["--test_output"]),
        ("kabuild test --test_output ", ["errors", "all", "summary"]),
        ("kabuild query --output l", ["label", "label_kind", "location"]),
    ],
)
def test_the_shell_can_complete(workspace: CliWorkspace, words: str, expected: list[str]) -> None:
    env = {
        "_KABUILD_COMPLETE": "bash_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": str(words.count(" ")),
    }
    done = subprocess.run(
        PROGRAM,
        cwd=workspace.root,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert [line.removeprefix("plain,") for line in done.stdout.split()] == expected
    assert not done.stderr


def test_a_closed_pipe_is_no_error(task: CliWorkspace) -> None:
    """``kabuild query ... | head -0``"""
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        task.command("query", "deps(//...)"),
        cwd=task.root,
        env=task.environment(),
        stdout=write,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(write)

    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr


def mistaken(workspace: CliWorkspace, mistake: str) -> subprocess.CompletedProcess[str]:
    """``kabuild version`` where the command evaluates the expression ``mistake``."""
    broken = f"import kabuild.cli.version as v; v.command.callback = lambda **_: {mistake}"
    return subprocess.run(
        [sys.executable, "-c", f"{broken}; from kabuild.cli.main import main; main()", "version"],
        cwd=workspace.root,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    "mistake",
    ["len(1)", "(_ for _ in ()).throw(RecursionError('raised by something else'))"],
)
def test_a_mistake_of_kabuilds_own_has_its_own_code(workspace: CliWorkspace, mistake: str) -> None:
    """It says where, and is not mistaken for a build that failed, nor for a mistake in a file."""
    done = mistaken(workspace, mistake)

    assert done.returncode == 37
    assert "Traceback" in done.stderr
    assert "internal error: this is a bug in kabuild" in done.stderr


def test_a_process_that_left_is_the_machines_failure(workspace: CliWorkspace) -> None:
    """Code 1 is a failed build. (The end of stdout's reader is no failure at all.)"""
    mistake = "(_ for _ in ()).throw(BrokenPipeError(32, 'Broken pipe'))"
    done = mistaken(workspace, mistake)

    assert done.returncode == 36
    assert done.stderr.startswith("error: a process that kabuild wrote to has ended (broken pipe)")
