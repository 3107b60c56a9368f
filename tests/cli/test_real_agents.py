"""The command lines of others, as they are shipped, in a sandbox without a network.

A model that answers from a script stands in for the real one, on the session's own loopback. What
is declared in ``toolchains/agents/BUILD.toml`` is what runs, but for the address of the model. The
command lines are fetched once into the user's store; where that cannot be done, this is skipped.

One of them takes its turn in each run, beside those that changed since they last passed.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import tomllib
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from kabuild.store import default_path
from tests.tasks.chosen import choose, digest, every, read_record, turn
from tests.testkit.cli import PROGRAM, REPOSITORY, CliWorkspace, copy_store
from tests.testkit.kept import ROOT

from .conftest import KERNEL, declare

KEY = "sk-scripted-correct-horse"
FETCH_SECONDS = 240
RECORD = ROOT / "command-lines.json"
EDIT = "sed -i s/twice/doubled/g double.hip && kabuild-check compile"
PROVIDER = '{name="scripted",base_url="{service}/v1",env_key="CODEX_API_KEY",wire_api="responses"}'


@dataclass(frozen=True)
class Shipped:
    """One shipped agent, and how it finds the scripted model.

    ``stop`` is a command by which its model ends the run; where empty, saying nothing more does.
    """

    name: str
    toolchain: str
    secret: str
    model: str = "scripted"
    env: dict[str, str] = field(default_factory=dict)
    arguments: tuple[str, ...] = ()
    stop: str = ""


SHIPPED = (
    Shipped(
        "claude_code",
        "claude-code",
        "ANTHROPIC_API_KEY",
        env={"ANTHROPIC_BASE_URL": "{service}", "CLAUDE_CODE_MAX_RETRIES": "0"},
    ),
    Shipped(
        "codex",
        "codex-cli",
        "CODEX_API_KEY",
        arguments=(
            *("-c", "model_provider=scripted"),
            *("-c", f"model_providers.scripted={PROVIDER}"),
        ),
    ),
    Shipped(
        "mini_swe",
        "mini-swe-agent",
        "OPENAI_API_KEY",
        model="openai/scripted",
        env={"OPENAI_BASE_URL": "{service}/v1", "MSWEA_MODEL_RETRY_STOP_AFTER_ATTEMPT": "1"},
        stop="echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT",
    ),
)


def _definition(shipped: Shipped) -> dict[str, Any]:
    """What the repository declares, with the model's address changed and nothing else."""
    text = (REPOSITORY / "toolchains/agents/BUILD.toml").read_text()
    (found,) = [a for a in tomllib.loads(text)["agent"] if a["name"] == shipped.name]
    del found["hosts"]
    files = ["model_server.py", "model_protocols.py", "script.json"]
    return {
        **found,
        "cli": f"//toolchains/agents:{shipped.toolchain}",
        "command": [*found["command"], *shipped.arguments],
        "env": {**found.get("env", {}), **shipped.env},
        "secrets": [shipped.secret],
        "model": shipped.model,
        "network": "loopback",
        "service": ["python3", "{files}/model_server.py", "{files}/script.json"],
        "files": files,
        "seconds": 120,
    }


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{k} = {_toml(v)}" for k, v in value.items()) + " }"
    return json.dumps(value)


def _fetch(toolchain: str) -> None:
    """Have a command line in the user's store, or skip the test and say why not."""
    fetch = [*PROGRAM, "toolchain", "fetch", f"//toolchains/agents:{toolchain}"]
    try:
        done = subprocess.run(
            fetch,
            cwd=REPOSITORY,
            capture_output=True,
            text=True,
            timeout=FETCH_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        pytest.skip(f"{toolchain} cannot be fetched within {FETCH_SECONDS} s")
    if done.returncode:
        pytest.skip(f"{toolchain} cannot be fetched: {done.stderr.strip()}")


def _workspace(tmp_path: Path, store: Path, shipped: Shipped, key: str) -> CliWorkspace:
    _fetch(shipped.toolchain)
    made = CliWorkspace.make(tmp_path)
    copy_store(store, made.store)
    (made.store / "toolchains").symlink_to(default_path() / "toolchains")
    declare(made, "double")
    lines = [f"{name} = {_toml(value)}" for name, value in _definition(shipped).items()]
    made.write("agents/BUILD.toml", "\n".join(["[[agent]]", *lines, ""]))
    for name in ("model_server.py", "model_protocols.py"):
        made.write(f"agents/{name}", (REPOSITORY / "tests/testkit" / name).read_text())
    turns = [
        {"text": "I look first.", "run": "cat BRIEF.md", "cached_tokens": 30},
        {"text": "Now I change it.", "run": EDIT},
        {"text": "It is done.", "run": shipped.stop},
    ]
    made.write("agents/script.json", json.dumps({"key": KEY, "turns": turns}))
    return CliWorkspace(made.root, made.store, {shipped.secret: key})


@dataclass(frozen=True)
class InTurn:
    """Which command lines run, and the record of what they were when they passed."""

    digests: dict[str, str]
    due: tuple[str, ...]

    @classmethod
    def now(cls) -> InTurn:
        """Those of this run; what all of them are made of counts for each."""
        shared = " ".join(digest(REPOSITORY / of) for of in ("toolchains/agents", "rules/agent"))
        shared += (REPOSITORY / "toolchains/lock.toml").read_text()
        parts = {s.name: f"{shared} {json.dumps(_definition(s))}" for s in SHIPPED}
        digests = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in parts.items()}
        in_turn = f"{turn()} command lines"
        choice = choose(digests, read_record(RECORD), in_turn, every=every(), sample=1)
        return cls(digests, choice.labels)

    def passed(self, name: str) -> None:
        """Record that this one works as it is now."""
        known = read_record(RECORD) or {}
        RECORD.write_text(json.dumps({**known, name: self.digests[name]}, indent=1))


@pytest.fixture(scope="module")
def chosen() -> InTurn:
    return InTurn.now()


@pytest.mark.parametrize("shipped", SHIPPED, ids=lambda shipped: shipped.name)
def test_a_real_command_line_changes_a_kernel(
    tmp_path: Path, runtime_store: Path, chosen: InTurn, shipped: Shipped
) -> None:
    if shipped.name not in chosen.due:
        pytest.skip("it passed as it is, or another one is in turn")
    workspace = _workspace(tmp_path, runtime_store, shipped, KEY)

    ran = workspace.run(
        "test", "//double", f"--agent=//agents:{shipped.name}", "--gates=compile", "--json"
    )

    made = workspace.root / "out/double/double.agent"
    assert ran.code in {0, 3}, ran.out + ran.err
    facts = json.loads((made / "agent.json").read_text())
    assert facts["state"] == "finished", facts
    assert (made / "solution/double.hip").read_text() == KERNEL.replace("twice", "doubled")
    usage = facts["usage"]
    assert usage["turns"] == 3
    assert (usage["input_tokens"], usage["output_tokens"]) == (300, 60)
    assert usage["cached_tokens"] == 30
    assert facts["checks"] == 1
    transcript = (made / "transcript.jsonl").read_text()
    entries = [json.loads(line) for line in transcript.splitlines()]
    said = " ".join(entry["text"] for entry in entries if entry["role"] == "assistant")
    for text in ("I look first.", "Now I change it.", "It is done."):
        assert text in said
    assert any("y = 2 x." in e["text"] for e in entries if e["role"] in {"tool", "user"})
    assert "MISSING_ENTRY" in transcript  # what kabuild-check said of the changed kernel
    assert KEY not in transcript
    chosen.passed(shipped.name)


def test_what_changed_runs_beside_the_one_in_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KABUILD_TEST_SUITE", raising=False)
    monkeypatch.setattr(sys.modules[__name__], "RECORD", tmp_path / "record.json")
    names = [shipped.name for shipped in SHIPPED]
    first = InTurn.now()
    for name in names:
        first.passed(name)
    (other, *_) = [name for name in names if name not in first.due]

    second = InTurn.now()
    replace(second, digests={**second.digests, other: "as it was before"}).passed(other)

    assert len(first.due) == 1
    assert second.due == first.due
    assert {*InTurn.now().due} == {*first.due, other}


def test_a_command_line_that_is_not_logged_in_is_no_result(
    tmp_path: Path, runtime_store: Path
) -> None:
    shipped = SHIPPED[0]
    workspace = _workspace(tmp_path, runtime_store, shipped, "sk-of-somebody-else")

    ran = workspace.run("build", "//double:double.agent", f"--agent=//agents:{shipped.name}")

    assert ran.code == 36, ran.out + ran.err
    assert "claude_code is not available: Invalid API key" in ran.out + ran.err
