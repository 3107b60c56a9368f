"""The command as a session runs it, up to what its adapter makes of what it prints."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import adapter
import kabuild_check
import main
import pytest
from adapter import Captured, Report, State

from tests.testkit.model_server import ModelServer, Script, Turn

from .scripted import CONFIGS, Gates, kernel, reply

KEY = "sk-correct-horse"
FAST = Turn(reply(kernel(2)))


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with its kernel, and gates that answer."""
    for name, text in (
        ("BRIEF.md", "# double\n\ny = 2 x.\n"),
        ("reference.py", "def reference(): ...\n"),
        ("configs.json", json.dumps(CONFIGS)),
        ("double.hip", kernel()),
    ):
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(kabuild_check, "check", Gates().check)
    monkeypatch.setenv("SOME_KEY", KEY)
    return tmp_path


def _arguments(desk: Path, url: str, *more: str) -> list[str]:
    fixed = ("--protocol=openai", "--model=m", "--key=SOME_KEY", "--parallel=1", "--soft=off")
    own = (f"--endpoint={url}", f"--journal={desk / 'journal'}", "--attempts=1")
    return [str(desk / "double.hip"), *fixed, *own, *more]


def _report(out: str, err: str, code: int | None, state: State) -> Report:
    captured = Captured(out.encode(), err.encode(), code, state, 1.0, Path("/"), Path("/"))
    return adapter.load("evolve").read(captured)


def _run(
    desk: Path, capsys: pytest.CaptureFixture[str], turns: tuple[Turn, ...], *more: str
) -> tuple[int, Report]:
    with ModelServer(Script(turns, by="request", key=KEY)) as server:
        code = main.main(_arguments(desk, server.url, *more))
    out, err = capsys.readouterr()
    return code, _report(out, err, code, State.FAILED if code else State.FINISHED)


def test_what_a_session_learns(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, report = _run(desk, capsys, (FAST, Turn("Hm.")), "--generations=2", "--prices=1,0,5")

    assert (code, report.state, report.message) == (0, State.FINISHED, "")
    assert (desk / "double.hip").read_text() == kernel(2)
    assert [path.name for path in desk.glob(".*")] == []
    assert (report.usage.turns, report.usage.input_tokens) == (2, 200)
    assert report.usage.dollars == pytest.approx((200 + 5 * 40) / 1e6)
    assert report.figures["speedup"] == pytest.approx(2.0)
    roles = [entry["role"] for entry in report.transcript]
    assert roles == ["system", "tool", *["user", "assistant", "tool"] * 2]


@pytest.mark.parametrize(
    ("turn", "more", "state", "said"),
    [
        (Turn(status=503, error="away"), (), State.FAILED, "status 503: away"),
        (Turn(status=503, error="away"), ("--outage=no-result",), State.UNAVAILABLE, "away"),
        (Turn(status=401, error=f"bad {KEY}"), (), State.UNAVAILABLE, "status 401: bad [key]"),
        (Turn(status=400, error="too long"), (), State.FAILED, "status 400: too long"),
    ],
)
def test_a_model_that_does_not_answer(
    desk: Path,
    capsys: pytest.CaptureFixture[str],
    turn: Turn,
    more: tuple[str, ...],
    state: State,
    said: str,
) -> None:
    code, report = _run(desk, capsys, (FAST, turn), *more)

    assert (code, report.state) == (1, state)
    assert said in report.message
    assert (desk / "double.hip").read_text() == kernel(2), "what was kept is handed in"


@pytest.mark.parametrize("status", [404, 503])
def test_a_model_that_never_answers_is_no_result(
    desk: Path, capsys: pytest.CaptureFixture[str], status: int
) -> None:
    _, report = _run(desk, capsys, (Turn(status=status, error="no such model"),))

    assert report.state is State.UNAVAILABLE
    assert f"status {status}: no such model" in report.message


def test_a_budget_of_its_own(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, report = _run(desk, capsys, (FAST,) * 3, "--turns=2")

    assert (code, report.state, report.message) == (0, State.BUDGET, "all 2 turns are used up")


def test_kernels_that_share_a_budget_have_their_part(
    desk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shares = desk / "shares.json"
    shares.write_text('{"double": 0.25, "softmax": 0.75}')

    _, report = _run(desk, capsys, (Turn("Hm."),) * 20, "--turns=16", f"--shares={shares}")

    assert report.usage.turns == 4


@pytest.mark.parametrize(
    ("shares", "more", "complaint"),
    [
        ('{"gelu": 0.5}', ("--turns=9",), "has no share for 'double', only for gelu"),
        ('{"double": 0.5}', (), "give --turns, too"),
        ("{", ("--turns=9",), "not valid JSON"),
    ],
)
def test_shares_that_do_not_fit(
    desk: Path,
    capsys: pytest.CaptureFixture[str],
    shares: str,
    more: tuple[str, ...],
    complaint: str,
) -> None:
    (desk / "shares.json").write_text(shares)

    with pytest.raises(SystemExit):
        main.main(_arguments(desk, "http://h", f"--shares={desk / 'shares.json'}", *more))

    assert complaint in capsys.readouterr().err


@pytest.mark.parametrize(
    "option", ["--parallel=0", "--turns=-1", "--prices=1,2", "--prices=-1,0,0", "--protocol=x"]
)
def test_options_that_mean_nothing(
    desk: Path, capsys: pytest.CaptureFixture[str], option: str
) -> None:
    with pytest.raises(SystemExit):
        main.main(_arguments(desk, "http://h", option))

    assert option.split("=", maxsplit=1)[0].lstrip("-") in capsys.readouterr().err


def test_what_was_stopped_from_outside_or_says_nonsense_is_still_read() -> None:
    usage = json.dumps({"usage": {"turns": 3, "input_tokens": 7}})
    end: dict[str, Any] = {"end": {"state": "finished", "message": "", "figures": []}}

    stopped = _report(f"{usage}\n", "", None, State.TIMED_OUT)
    crashed = _report(f"x\n[1]\n{usage}\n", "Traceback\nMemoryError", 1, State.FAILED)
    odd = _report(json.dumps(end), "", 0, State.FINISHED)

    assert (stopped.state, stopped.usage.turns) == (State.TIMED_OUT, 3)
    assert (crashed.state, crashed.message) == (State.FAILED, "MemoryError")
    assert (odd.state, dict(odd.figures)) == (State.FINISHED, {})


def test_its_usage_is_followed_while_it_runs() -> None:
    meter = adapter.load("evolve").meter()

    assert meter.feed(b'{"role": "user", "text": "{}"}') is None
    used = meter.feed(b'{"usage": {"turns": 2, "output_tokens": 9}}')
    assert used is not None
    assert used.turns == 2
