"""What of an agent's declaration is refused before anything runs, and where."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kabuild.rule import AttributeProblem, Source
from rules.agent.definition import ADAPTERS, BUDGETS, check_agent, definition
from rules.agent.rule import RULE

TOOLS = Path(__file__).parents[3] / "rules/agent/tools"
SOUND: dict[str, Any] = {
    "replays": None,
    "command": ("agent", "{kernel}"),
    "files": (Source("agents/mine.py"),),
    "files_of": None,
    "service": (),
    "version_command": (),
    "version": "",
    "env": {},
    "secrets": (),
    "hosts": (),
    "network": "none",
    "prompt_by": "file",
    "model": "m",
    "seconds": 1.0,
    "turns": 0,
    "tokens": 0,
    "dollars": 0.0,
    "adapter": "plain",
    "cli": None,
    "resumes": False,
}
REPLAY = {"command": (), "replays": "expert"}


def test_every_adapter_of_ours_may_be_named() -> None:
    found = {path.stem for path in (TOOLS / "adapters").glob("*.py")} - {"__init__"}

    assert set(ADAPTERS) == found


@pytest.mark.parametrize(
    "sound",
    [
        {},
        REPLAY,
        {**REPLAY, "replays": ""},
        {"command": (), "replays": "expert"},
        {"command": ("agent", "{prompt}"), "prompt_by": "argument"},
        {"network": "proxy", "hosts": ("api.example.com:443",), "service": ("serve",)},
        {"version_command": ("agent", "-V"), "version": "1.2", "dollars": 2.5},
        {"env": {"KEY_FILE": "{home}/{model}"}, "secrets": ("API_KEY",)},
        {"adapter": "mine"},
        {"command": ("agent", "--with={files}/mine.py", "{files}/./")},
        {"command": ("agent", "{files}/lib"), "files": (Source("agents/lib/a.py"),)},
        {"command": ("agent", "{files}/theirs.py"), "files_of": "//other"},
        {"command": ("agent", "{journal}"), "resumes": True},
        {"command": ("{cli}/bin/agent",), "cli": "//agents:cli"},
    ],
)
def test_what_is_sound_is_taken(sound: dict[str, Any]) -> None:
    check_agent({**SOUND, **sound})


@pytest.mark.parametrize(
    ("change", "path", "why"),
    [
        ({"command": ()}, (), "either replays a solution or runs a command"),
        ({"replays": "expert"}, ("command",), "either replays a solution or runs a command"),
        ({**REPLAY, "replays": "../x"}, ("replays",), "'../x' is not a directory below"),
        ({**REPLAY, "replays": "/etc"}, ("replays",), "'/etc' is not a directory below"),
        ({**REPLAY, "replays": "a\0"}, ("replays",), r"'a\x00' is not a directory below"),
        ({"command": ("a", "{kernle}")}, ("command", 1), "no placeholder '{kernle}'"),
        ({"env": {"A": "{home"}, "version_command": ("{x}",)}, ("version_command", 0), "'{x}'"),
        ({"env": {"A": 3}}, ("env", "A"), "3 is not a string"),
        ({"env": {"A-B": ""}}, ("env", "A-B"), "not a variable name"),
        ({"env": {"PATH": "/bin"}}, ("env", "PATH"), "is set by kabuild"),
        ({"secrets": ("A", "KABUILD_X")}, ("secrets", 1), "is set by kabuild"),
        ({"env": {"A": ""}, "secrets": ("A",)}, ("env", "A"), "both in 'env' and a secret"),
        ({"prompt_by": "argument"}, ("prompt_by",), "no argument of the command is {prompt}"),
        ({"network": "proxy"}, ("network",), "belong together"),
        ({"hosts": ("a:1",)}, ("hosts",), "belong together"),
        ({"network": "proxy", "hosts": ("https://a",)}, ("hosts", 0), "is not HOST:PORT"),
        ({"network": "proxy", "hosts": ("a:65536",)}, ("hosts", 0), "is not HOST:PORT"),
        ({"command": ("",)}, ("command", 0), "has no name"),
        ({"command": ("a", "{files}/my.py")}, ("command", 1), "'{files}/my.py' is not one of its"),
        ({"env": {"P": "{files}/lib"}}, ("env", "P"), "'{files}/lib' is not one of its files"),
        ({"secrets": ("sk-1234",)}, ("secrets", 0), "is not a variable name"),
        ({"service": ("serve",)}, ("network",), "needs the agent's own loopback"),
        ({"version": "1"}, ("version",), "needs a 'version_command'"),
        ({"adapter": "codx"}, ("adapter",), "no adapter 'codx', and no codx.py in 'files'"),
        ({"command": ("a", "{journal}")}, ("command", 1), "needs resumes = true"),
        ({"command": ("{cli}/bin/a",)}, ("command", 0), "{cli} needs a toolchain"),
        ({"env": {"P": "{cli}"}}, ("env", "P"), "{cli} needs a toolchain"),
    ],
)
def test_what_means_nothing_is_refused(
    change: dict[str, Any], path: tuple[str | int, ...], why: str
) -> None:
    with pytest.raises(AttributeProblem) as caught:
        check_agent({**SOUND, **change})

    assert caught.value.path == path
    assert why in str(caught.value)


@pytest.mark.parametrize(
    ("name", "wrong", "why"),
    [
        ("memory", 8 << 30, "found 8589934592, expected 64 to 1_048_576 MiB"),
        ("memory", 63, "64 to 1_048_576 MiB"),
        ("seconds", 3_600_000, "0.1 to 604_800 seconds"),
        ("seconds", float("nan"), "found nan"),
        ("turns", -1, "0 to 1_000_000 turns"),
        ("tokens", 10**20, "0 to 10_000_000_000 tokens"),
        ("dollars", float("inf"), "0 to 100_000 dollars"),
    ],
)
def test_a_budget_that_cannot_be_meant_is_refused(name: str, wrong: float, why: str) -> None:
    """Whoever wrote it took its unit for another one, so that the error says which it is."""
    taken = RULE.attrs[name]
    assert taken.check is not None
    taken.check(taken.default)

    with pytest.raises(AttributeProblem) as caught:
        taken.check(wrong)

    assert why in caught.value.message
    assert caught.value.hint.startswith(f"it is in {BUDGETS[name].unit}: ")


def test_a_definition_names_secrets_and_holds_no_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("API_KEY", "correct-horse-battery")

    made = definition({**SOUND, "secrets": ("API_KEY",)}, "${toolchain:cli}")

    assert made["secrets"] == ["API_KEY"]
    assert "correct-horse" not in str(made)
