"""What an agent sees, whom it reaches, and what of it is remembered."""

from __future__ import annotations

import json
import re
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.testkit.cli import REPOSITORY, CliWorkspace

from .agents import snoop
from .conftest import KERNEL, declare

MARKER = "the-expert-was-here"
UNDECLARED = "hunter2-hunter2-hunter2"
SALT = "kabuild-public-1"
FILES = {
    *(f"/workspace/{n}" for n in ("BRIEF.md", "CHEATSHEET.md", "TARGET.md", "configs.json")),
    *("/workspace/double.hip", "/workspace/reference.py", "/agent/snoop.py"),
    *("/kabuild/agent/snoop.py", "/kabuild/bin/kabuild-check", "/kabuild/kernel"),
    *("/kabuild/lib/kabuild_check.py", "/kabuild/prompt.md", "/kabuild/run/check"),
    *(f"/etc/{name}" for name in ("group", "hosts", "nsswitch.conf", "passwd")),
}
ASKS = """\
import os, socket, sys

proxy = os.environ["HTTPS_PROXY"].removeprefix("http://").split(":")
for target in sys.argv[1:]:
    with socket.create_connection((proxy[0], int(proxy[1])), 20) as connection:
        connection.sendall(f"CONNECT {target} HTTP/1.1\\r\\n\\r\\n".encode())
        print(connection.recv(100).split()[1].decode())
try:
    socket.create_connection(("127.0.0.1", int(sys.argv[1].split(":")[1])), 20)
except ConnectionRefusedError:
    print("nobody at home")
"""
INSISTS = """\
import os, socket, sys, time

proxy = os.environ["HTTPS_PROXY"].removeprefix("http://").split(":")
while True:
    with socket.create_connection((proxy[0], int(proxy[1])), 20) as connection:
        connection.sendall(f"CONNECT {sys.argv[1]} HTTP/1.1\\r\\n\\r\\n".encode())
        print(connection.recv(100))
    time.sleep(0.1)
"""
APPENDS = """\
import os, pathlib, sys
kernel = pathlib.Path(sys.argv[1])
kernel.write_text(kernel.read_text() + f"// {sys.argv[2]} {os.environ.get('FLAVOUR')}\\n")
"""


def _agent(name: str, command: list[str], **fields: Any) -> str:
    files = [argument[8:] for argument in command if argument.startswith("{files}/")]
    lines = {"name": name, "command": command, "files": files, "seconds": 100, **fields}
    return "[[agent]]\n" + "".join(f"{k} = {json.dumps(v)}\n" for k, v in lines.items())


def _facts(workspace: CliWorkspace, trial: int = 1) -> dict[str, Any]:
    suffix = "" if trial == 1 else f"#{trial}"
    value: dict[str, Any] = json.loads(
        (workspace.root / f"out/double/double.agent{suffix}/agent.json").read_text()
    )
    return value


def _said(workspace: CliWorkspace) -> list[str]:
    lines = (workspace.root / "out/double/double.agent/transcript.jsonl").read_text().splitlines()
    entries = [json.loads(line) for line in lines]
    return [entry["text"] for entry in entries if entry["role"] == "assistant"]


@pytest.fixture
def port() -> Iterator[int]:
    """A port of this machine's loopback where somebody listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def accept() -> None:
            while True:
                try:
                    server.accept()[0].close()
                except OSError:
                    return

        threading.Thread(target=accept, daemon=True).start()
        yield server.getsockname()[1]


def test_a_hostile_agent_finds_nothing_but_its_desk(quick: CliWorkspace, port: int) -> None:
    workspace = CliWorkspace(quick.root, quick.store, {"HUNTER": UNDECLARED})
    declare(workspace, "double", solution=f"// {MARKER}\n{KERNEL}")
    words = [MARKER, UNDECLARED, SALT, str(workspace.root), str(workspace.store)]
    words = [*words[:1], UNDECLARED[::-1], *words[2:]]  # its own command line names them
    command = ["{python}", "{files}/snoop.py", json.dumps(words), f'["127.0.0.1:{port}"]']
    workspace.write("agents/BUILD.toml", _agent("snoop", command))
    workspace.write("agents/snoop.py", Path(snoop.__file__).read_text())

    ran = workspace.run("build", "//double:double.agent", "--agent=//agents:snoop")

    assert ran.code == 0, ran.err
    assert _facts(workspace)["state"] == "finished", _facts(workspace)
    found = json.loads(_said(workspace)[-1])
    kit = [path for path in found["files"] if path.startswith("/kabuild/toolkit/")]
    assert {path for path in found["files"] if path not in kit} - {"/etc/ld.so.cache"} == FILES
    sheet = (REPOSITORY / "rules/agent/sheets/cpu.md").read_text()
    assert set(re.findall(r"/kabuild/toolkit/[\w./]+", sheet)) <= set(kit)
    for path in kit:
        below = path.removeprefix("/kabuild/toolkit/").removeprefix("tools/")
        where = ("toolchains", "rules/harness/tools")
        assert any((REPOSITORY / base / below).is_file() for base in where), path
    assert found["environment"].keys() == {
        *("PATH", "HOME", "TMPDIR", "LANG", "PYTHONPATH", "PYTHONDONTWRITEBYTECODE"),
    }
    private = (workspace.root, workspace.store, REPOSITORY / "tasks", REPOSITORY / "rules")
    for mount in (*found["toolchains"], *found["sources"]):
        if mount == "/":
            continue
        assert not any(path.is_relative_to(mount) for path in private), mount
        assert not any(Path(mount).is_relative_to(path) for path in private), mount
    assert found["texts"] == []
    assert found["installed"] == []
    assert found["processes"]["readable"] == []
    assert len(found["processes"]["pids"]) == 2
    assert found["connections"] == []
    assert found["calls"] == []
    assert found["descriptors"].keys() == {"0", "1", "2"}
    assert found["dev"] == [
        *("fd", "full", "null", "random", "shm", "stderr", "stdin", "stdout", "urandom", "zero"),
    ]
    assert set(found["ids"]) == {1000}


def test_a_proxy_leads_to_what_is_listed_and_nowhere_else(quick: CliWorkspace, port: int) -> None:
    listed, other = f"127.0.0.1:{port}", "127.0.0.1:1"
    command = ["{python}", "{files}/asks.py", listed, other]
    proxied = _agent("proxied", command, network="proxy", hosts=[listed])
    quick.write("agents/BUILD.toml", proxied)
    quick.write("agents/asks.py", ASKS)

    ran = quick.run("build", "//double:double.agent", "--agent=//agents:proxied")

    assert ran.code == 0, ran.err
    assert _said(quick) == ["200", "403", "nobody at home"]


def test_a_model_that_cannot_be_reached_ends_the_session_as_no_result(
    quick: CliWorkspace,
) -> None:
    """An agent would go on asking until its time is over, and blame the proxy."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        closed = f"127.0.0.1:{server.getsockname()[1]}"
    command = ["{python}", "{files}/insists.py", closed]
    insists = _agent("insists", command, network="proxy", hosts=["127.0.0.1:1", closed])
    quick.write("agents/BUILD.toml", insists)
    quick.write("agents/insists.py", INSISTS)

    ran = quick.run("test", "//double", "--agent=//agents:insists", "--gates=compile")

    assert ran.code == 36, ran.out + ran.err
    said = " ".join((ran.out + ran.err).split())
    assert f"this machine cannot reach {closed}: Connection refused" in said
    assert not (quick.root / "out/double/double.agent/agent.json").exists()


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        (
            {"command": ["no-such-command"]},
            "cannot start no-such-command: its sandbox has no such program; PATH is /kabuild/bin:",
        ),
        (
            {"version_command": ["{python}", "--version"], "version": "Python 2.7"},
            "should print version Python 2.7, not: Python 3",
        ),
        (
            {"version_command": ["{python}", "-c", "import nowhere"]},
            "should print its version, not: ModuleNotFoundError: No module named 'nowhere'",
        ),
        ({"secrets": ["SOME_KEY"]}, "needs the secret SOME_KEY, which is not set"),
    ],
)
def test_an_agent_that_cannot_be_run_is_no_result(
    quick: CliWorkspace, fields: dict[str, Any], why: str
) -> None:
    quick.write("agents/BUILD.toml", _agent("broken", **{"command": ["true"], **fields}))

    ran = quick.run("test", "//double", "--agent=//agents:broken", "--gates=compile")

    assert ran.code == 36, ran.out
    assert why in " ".join((ran.out + ran.err).split())


def test_an_error_is_where_the_file_lies_that_an_agent_has_handed_in(quick: CliWorkspace) -> None:
    command = ["{python}", "-c", "open('double.hip', 'w').write('nonsense')"]
    quick.write("agents/BUILD.toml", _agent("mine", command, files=[]))
    flags = ("--agent=//agents:mine", "--gates=compile")

    ran = quick.run("test", "//double", *flags, "--json")

    place, line, _ = ran.gate("compile")["summary"].split(":", 2)
    assert (place, line) == ("out/double/double.agent/solution/double.hip", "1")
    assert (quick.root / place).read_text() == "nonsense"


def test_each_trial_is_remembered_by_itself(quick: CliWorkspace) -> None:
    command = ["{python}", "{files}/appends.py", "{kernel}", "{seed}"]
    quick.write("agents/BUILD.toml", _agent("mine", command))
    quick.write("agents/appends.py", APPENDS)
    flags = ("--agent=//agents:mine", "--gates=compile")

    two = quick.run("test", "//double", *flags, "--trials=2", "--json")
    three = quick.run("test", "//double", *flags, "--trials=3", "--json")
    again = quick.run("test", "//double", *flags, "--trials=3")
    rerun = quick.run("test", "//double", *flags, "--trials=3", "--agent_rerun=2")
    old = quick.run("test", "//double", *flags, "--trials=3")

    agents = [f"//double:double.agent{suffix}" for suffix in ("", "#2", "#3")]
    assert set(agents[:2]) <= two.executed
    assert {label for label in three.executed if ".agent" in label} == {agents[2]}
    assert three.json["trials"][0]["pass_at"] == {"1": 1.0, "2": 1.0, "3": 1.0}
    assert again.executed == set()
    assert set(agents) <= rerun.executed
    assert old.executed == set()


def test_who_develops_an_agent_pays_for_what_changed(quick: CliWorkspace) -> None:
    """A change of the agent asks it again; where it answers the same, nothing is judged again."""
    command = ["{python}", "{files}/appends.py", "{kernel}", "one"]
    quick.write("agents/BUILD.toml", _agent("mine", command))
    quick.write("agents/appends.py", APPENDS)
    flags = ("--agent=//agents:mine", "--gates=compile,correctness")
    quick.run("test", "//double", *flags)

    quick.write("agents/appends.py", APPENDS + "# changed\n")
    same = quick.run("test", "//double", *flags)
    quick.write("agents/appends.py", APPENDS.replace("FLAVOUR", "HOME"))
    other = quick.run("test", "//double", *flags)

    assert same.executed == {"//double:double.agent"}
    # Its kernel differs by a comment: it is compiled, to the same bytes.
    assert other.executed == {"//double:double.agent", "//double:double.compile"}


def test_a_person_in_the_place_of_an_agent_has_one_trial(quick: CliWorkspace) -> None:
    ran = quick.run("test", "//double", "--agent=none", "--trials=3", "--gates=compile", "--json")

    assert [item["label"] for item in ran.json["targets"]] == ["//double:double.compile"]


def test_more_trials_than_can_be_meant_are_refused_before_they_are_planned(
    quick: CliWorkspace,
) -> None:
    for arguments in (("//double", "--trials=1001"), ("//double#99999999",)):
        ran = quick.run("test", *arguments)
        assert (ran.code, ran.out) == (2, "")
        assert "1000" in ran.err
