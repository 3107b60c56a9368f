"""One run of the real program for each exit code, with a fault that causes it."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kabuild.base.errors import ExitCode
from tests.testkit.cli import REPOSITORY, CliWorkspace
from tests.testkit.generated import generate
from tests.testkit.processes import busy_seconds, descendants

TASK = "tasks/family0/t0"
TOOLCHAIN = '[[toolchain]]\nname = "tools"\nrole = "shovel"\nlocal = "{home}"\n'
BUG = "import kabuild.cli.version as version; version.command.callback = lambda **_: len(1)"


@pytest.fixture
def made(tmp_path: Path) -> CliWorkspace:
    """One task, whose gates are instant."""
    generate(tmp_path / "work", 1, shared=1, age=0)
    return CliWorkspace(tmp_path / "work", tmp_path / "store")


def ok(made: CliWorkspace) -> int:
    """All gates of a task pass."""
    return made.start("test", "//...").code


def build_failed(made: CliWorkspace) -> int:
    """A declaration has an unknown attribute."""
    file = made.root / TASK / "BUILD.toml"
    file.write_text(file.read_text() + "kernels = 1\n")
    return made.start("test", "//...").code


def command_line(made: CliWorkspace) -> int:
    """No command has this name."""
    return made.start("tset", "//...").code


def failed(made: CliWorkspace) -> int:
    """A kernel fails its gates."""
    made.write(f"{TASK}/kernel.hip", "bad\n")
    return made.start("test", "//...").code


def no_tests(made: CliWorkspace) -> int:
    """The only target is a toolchain."""
    made.write("my/BUILD.toml", TOOLCHAIN.format(home=made.root))
    return made.start("test", "//my:tools").code


def interrupted(made: CliWorkspace) -> int:
    """SIGINT while a gate runs."""
    rule = made.root / "rules/copied/rule.py"
    rule.write_text(rule.read_text().replace("v=pass;", "yes >/dev/null; v=pass;"))
    with subprocess.Popen(
        made.command("test", "//..."),
        cwd=made.root,
        env=made.environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        while process.poll() is None:
            if any(busy_seconds(pid, "yes") > 0 for pid in descendants(process.pid)):
                process.send_signal(signal.SIGINT)
                return process.wait(timeout=30)
            time.sleep(0.02)
    raise AssertionError(f"it ended with {process.returncode} before the gate ran")


def environment(made: CliWorkspace) -> int:
    """The store cannot be written: a file is in its place."""
    made.store.write_text("")
    return made.start("test", "//...").code


def internal(made: CliWorkspace) -> int:
    """A command of kabuild itself raises TypeError."""
    main = f"{BUG}; from kabuild.cli.main import main; main()"
    return subprocess.run(
        [sys.executable, "-c", main, "version"],
        cwd=made.root,
        env=made.environment(),
        capture_output=True,
        check=False,
    ).returncode


def toolchain_drift(made: CliWorkspace) -> int:
    """A file of a pinned toolchain was changed."""
    tool = made.write("home/bin/tool", "#!/bin/sh\n")
    tool.chmod(0o755)
    made.write("my/BUILD.toml", TOOLCHAIN.format(home=made.root / "home"))
    assert made.start("toolchain", "pin", "tools").code == 0
    tool.write_text("#!/bin/bash\n")
    return made.start("toolchain", "verify", "tools").code


CAUSES = {
    ExitCode.OK: ok,
    ExitCode.BUILD_FAILED: build_failed,
    ExitCode.COMMAND_LINE: command_line,
    ExitCode.TESTS_FAILED: failed,
    ExitCode.NO_TESTS: no_tests,
    ExitCode.INTERRUPTED: interrupted,
    ExitCode.ENVIRONMENT: environment,
    ExitCode.INTERNAL: internal,
    ExitCode.TOOLCHAIN_DRIFT: toolchain_drift,
}


@pytest.mark.parametrize("code", ExitCode)
def test_each_exit_code_is_that_of_a_real_fault(made: CliWorkspace, code: ExitCode) -> None:
    assert CAUSES[code](made) == code


def test_the_documentation_lists_all_codes() -> None:
    page = (REPOSITORY / "docs/results.md").read_text()
    section = page.partition("## Exit codes")[2].partition("\n## ")[0]
    assert [int(code) for code in re.findall(r"^\| (\d+) \|", section, re.MULTILINE)] == list(
        map(int, ExitCode)
    )
