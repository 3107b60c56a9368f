"""The search agent through the real program, as it is declared, with a model that is scripted.

What differs from ``toolchains/agents/BUILD.toml`` is the model's address, and how long it searches.
"""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import threading
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.testkit.cli import REPOSITORY, CliWorkspace
from tests.testkit.model_server import ModelServer, Request, Script, Turn

from .conftest import KERNEL

KEY = "sk-scripted-correct-horse"
PACE = "for (int k = 0; k < {}; ++k) reinterpret_cast<volatile float*>(y)[i] = 2.0f * x[i];"
SLOW, FAST, SLOWER = (
    KERNEL.replace("y[i] = 2.0f * x[i];", PACE.format(count)) for count in (5000, 100, 2000)
)
"""Kernels that differ so much in speed that no busy machine hides it."""

WRONG = KERNEL.replace("2.0f", "3.0f")
BROKEN = KERNEL.replace("hipGetLastError()", "hipGetLostError()")
FINE = "compile: ok\nmemory: ok\nnumerics: ok"
FORGED = f"Surely right.\n{FINE}"


def _elsewhere() -> tuple[socket.socket, str]:
    """A socket, and its URL, that a session reaches through its proxy only."""
    listening = socket.create_server(("127.0.0.2", 0))
    return listening, f"http://127.0.0.2:{listening.getsockname()[1]}"


def code(source: str) -> Turn:
    return Turn(f"I would write this.\n```cpp\n{source}```\nIt is faster.")


def _shipped(name: str) -> dict[str, Any]:
    """What the repository declares."""
    text = (REPOSITORY / "toolchains/agents/BUILD.toml").read_text()
    (found,) = [a for a in tomllib.loads(text)["agent"] if a["name"] == name]
    assert isinstance(found, dict)
    return found


def _declare(workspace: CliWorkspace, name: str, url: str, **changes: Any) -> None:
    """The shipped agent ``name``, asking ``url``, as a workspace of one's own declares it."""
    found = _shipped(name)
    replaced = {"--endpoint": url, "--backoff": "0.01", **changes}
    command = [a for a in found["command"] if a.partition("=")[0] not in replaced]
    command += [f"{option}={value}" for option, value in replaced.items()]
    found |= {"command": command, "hosts": [url.removeprefix("http://")], "seconds": 100}
    found["files_of"] = f"//toolchains/agents:{name}"
    del found["files"]
    lines = [f"{key} = {json.dumps(value)}" for key, value in found.items()]
    workspace.write("agents/BUILD.toml", "\n".join(["[[agent]]", *lines, ""]))
    workspace.write("double/double.hip", SLOW)
    task = workspace.root / "double/BUILD.toml"
    longer = "samples = 6, budget_seconds = 1.0"  # of three processes, one may be held up
    task.write_text(task.read_text().replace("samples = 2, budget_seconds = 0.1", longer))
    assert longer in task.read_text()


class Watched:
    """What a session left."""

    def __init__(self, workspace: CliWorkspace) -> None:
        made = workspace.root / "out/double/double.agent"
        self.facts = json.loads((made / "agent.json").read_text())
        self.kernel = (made / "solution/double.hip").read_text()
        lines = (made / "transcript.jsonl").read_text().splitlines()
        self.entries = [json.loads(line) for line in lines]
        self.outcomes = [e["outcome"] for e in self.entries if "outcome" in e]


def _asked(request: Request) -> str:
    """What a request asks: the user's message."""
    text = request.body["messages"][-1]["content"]
    assert isinstance(text, str)
    return text


def _files_with(word: str, *roots: Path) -> list[Path]:
    files = (path for root in roots for path in root.rglob("*") if path.is_file())
    return [path for path in files if word.encode() in path.read_bytes()]


def test_a_search_keeps_what_is_right_and_faster(quick: CliWorkspace) -> None:
    turns = (
        Turn("I have no idea."),
        *(code(BROKEN), Turn("compile: wrong\nmemory: ok\nnumerics: ok")),
        *(code(WRONG), Turn(FORGED)),
        *(Turn(status=429, error=f"slow down, {KEY}"), code(FAST), Turn("numerics: wrong")),
        *(code(SLOWER), Turn(FINE)),
        code(f"// the same again\n{FAST}"),
    )
    workspace = CliWorkspace(quick.root, quick.store, {"ANTHROPIC_API_KEY": KEY})
    listening, url = _elsewhere()
    with ModelServer(Script(turns, by="request", key=KEY), listening) as server:
        _declare(workspace, "evolve", url, **{"--parallel": "1", "--generations": "6"})
        gates = "--gates=compile,correctness"
        ran = workspace.run("test", "//...", "--agent=//agents:evolve", gates, "--json")

    assert ran.code == 0, ran.err
    seen = Watched(workspace)
    assert seen.facts["state"] == "finished", seen.facts
    assert seen.outcomes == ["malformed", "wrong", "wrong", "kept", "reverted", "duplicate"]
    assert seen.kernel == FAST
    assert ran.gate("correctness")["verdict"] == "PASS"

    asked = [_asked(request) for request in server.requests if request.status == 200]
    assert len(asked) == len(turns) - 1
    proposals = [text for text in asked if "## What to do" in text]
    for said, prompt in zip(
        (
            "no block of code",
            "hipGetLostError",
            "WRONG_RESULT",
            "ns a call",
            "not significantly faster",
        ),
        proposals[1:],
        strict=True,
    ):
        assert said in prompt
        assert said not in proposals[0].replace("ns a call", "")
    assert "k < 100;" in proposals[4].split("What is known")[0]
    assert "k < 100;" in proposals[5].split("What is known")[0]

    usage, figures = seen.facts["usage"], seen.facts["figures"]
    assert (usage["turns"], usage["input_tokens"]) == (len(asked), 100 * len(asked))
    assert (figures["retries"], figures["outcomes"]["kept"]) == (1, 1)
    assert figures["speedup"] > 1
    soft = figures["soft"]["matrices"]
    assert soft["compile"]["wrong_and_said_so"] == 1
    assert soft["numerics"]["right_but_said_wrong"] == 1
    assert soft["numerics"]["wrong_but_said_right"] == 1
    assert _files_with(KEY, workspace.root / "out", workspace.store) == []


class Stalling(ModelServer):
    """Answers the first two requests, and of the next two not even the first: both are waiting."""

    def __init__(self, script: Script, listening: socket.socket) -> None:
        super().__init__(script, listening)
        self.stalled = threading.Event()

    def take(self, depth: Callable[[], int], key: str) -> tuple[Turn, int]:
        turn, number = super().take(depth, key)
        if number == 4:
            self.stalled.set()
        if number in {3, 4}:
            threading.Event().wait(120)
        return turn, number


@contextmanager
def _started(workspace: CliWorkspace, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        workspace.command(*arguments),
        cwd=workspace.root,
        env=workspace.environment(),
        start_new_session=True,
    )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait(60)


def test_a_killed_search_goes_on_without_asking_again(quick: CliWorkspace) -> None:
    """And when the model goes away for good, that is how this run ended, with what it has."""
    workspace = CliWorkspace(quick.root, quick.store, {"OPENAI_API_KEY": KEY})
    unseen, gone = Turn("Nobody hears this."), Turn(status=503, error="gone")
    turns = (Turn("Hm."), code(FAST), unseen, unseen, gone, gone)
    options = {"--parallel": "2", "--generations": "9", "--soft": "off", "--attempts": "1"}
    build = ("build", "//double:double.agent", "--agent=//agents:evolve_openai")
    listening, url = _elsewhere()
    with Stalling(Script(turns, by="request", key=KEY), listening) as server:
        _declare(workspace, "evolve_openai", url, **options)
        with _started(workspace, *build):
            assert server.stalled.wait(240)
        ran = workspace.run(*build)

    assert ran.code == 0, ran.err
    seen = Watched(workspace)
    assert seen.facts["state"] == "failed", seen.facts
    assert "status 503: gone" in seen.facts["message"]
    first, again = server.requests[:2], server.requests[2:4]
    assert [request.status for request in (*first, *again)] == [200, 200, 503, 503]
    assert not {_asked(request) for request in first} & {_asked(request) for request in again}
    assert seen.facts["checks"] == 0, "nor was anything judged again"
    assert sorted(seen.outcomes) == ["kept", "malformed"]
    assert seen.kernel == FAST
    assert seen.facts["usage"]["turns"] == 2
    assert _files_with(KEY, workspace.root / "out", workspace.store) == []
