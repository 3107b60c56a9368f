"""What the adapters make of what command lines print. The lines are theirs, cut short."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import adapter
import pytest
from adapter import Captured, State, Usage
from adapters import claude_code, codex, cursor, mini_swe

HERE = Path("/nowhere")


def _lines(*events: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(event).encode() + b"\n" for event in events)


def _captured(
    stdout: bytes = b"", stderr: bytes = b"", state: State = State.FINISHED, home: Path = HERE
) -> Captured:
    return Captured(stdout, stderr, 0, state, 1.0, home, HERE)


def _message(number: int, *content: dict[str, Any]) -> dict[str, Any]:
    usage = {
        "input_tokens": 60,
        "cache_read_input_tokens": 40,
        "cache_creation_input_tokens": 5,
        "output_tokens": 20,
    }
    return {
        "type": "assistant",
        "message": {"id": f"msg_{number}", "content": list(content), "usage": usage},
    }


CLAUDE = (
    {"type": "system", "subtype": "init", "model": "opus"},
    _message(1, {"type": "thinking", "thinking": "hm"}),
    _message(1, {"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "ls"}}),
    {
        "type": "user",
        "message": {"content": [{"type": "tool_result", "content": [{"text": "k.hip"}]}]},
    },
    _message(2, {"type": "text", "text": "Done."}),
)
RESULT = {
    "type": "result",
    "subtype": "success",
    "is_error": False,
    "num_turns": 2,
    "result": "Done.",
    "total_cost_usd": 0.25,
    "terminal_reason": "completed",
    "usage": {"input_tokens": 120, "cache_read_input_tokens": 80, "output_tokens": 40},
}
API_ERROR = {**RESULT, "is_error": True, "terminal_reason": "api_error", "result": "No"}


def test_claude_code_tells_turns_tokens_money_and_what_was_done() -> None:
    report = claude_code.read(_captured(_lines(*CLAUDE, RESULT)))

    assert report.state is State.FINISHED
    assert report.usage == Usage(2, 200, 40, 80, 0.25)
    assert [entry["role"] for entry in report.transcript] == [
        *("assistant", "assistant", "tool", "assistant"),
    ]
    assert report.transcript[1]["tool"] == "Bash"
    assert report.transcript[2]["text"] == "k.hip"


def test_claude_codes_meter_counts_each_message_once() -> None:
    meter = claude_code.meter()
    usages = [meter.feed(line) for line in _lines(*CLAUDE).splitlines()]

    assert usages[0] is None
    assert usages[2] == Usage(1, 105, 20, 40)
    assert usages[-1] == Usage(2, 210, 40, 80)


@pytest.mark.parametrize(
    ("error", "state"),
    [
        *(("authentication_failed", State.UNAVAILABLE), ("rate_limit", State.UNAVAILABLE)),
        *(("billing_error", State.UNAVAILABLE), ("server_error", State.UNAVAILABLE)),
        ("invalid_request", State.FAILED),
    ],
)
def test_an_error_of_claude_codes_api_is_no_result_unless_it_is_its_own(
    error: str, state: State
) -> None:
    events = (*CLAUDE, {**_message(3), "error": error}, API_ERROR)

    assert claude_code.read(_captured(_lines(*events))).state is state


def test_other_ends_of_claude_code() -> None:
    spent = {**RESULT, "subtype": "error_max_budget_usd", "is_error": True}
    failed = {**RESULT, "is_error": True}

    assert claude_code.read(_captured(_lines(spent))).state is State.BUDGET
    assert claude_code.read(_captured(_lines(failed))).state is State.FAILED
    cut = claude_code.read(_captured(_lines(*CLAUDE), b"x\nboom\n"))
    assert (cut.state, cut.message) == (State.FAILED, "boom")
    late = claude_code.read(_captured(_lines(*CLAUDE), state=State.TIMED_OUT))
    assert late.state is State.TIMED_OUT


CODEX = (
    {"type": "thread.started", "thread_id": "x"},
    {"type": "item.completed", "item": {"type": "reasoning", "text": "hm"}},
    {"type": "item.completed", "item": {"type": "agent_message", "text": "Looking."}},
    {
        "type": "item.completed",
        "item": {"type": "command_execution", "command": "ls", "aggregated_output": "k.hip"},
    },
    {"type": "item.completed", "item": {"type": "file_change", "id": "i", "changes": ["k.hip"]}},
    {"type": "item.completed", "item": {"type": "error", "message": "careful"}},
)
COMPLETED = {
    "type": "turn.completed",
    "usage": {"input_tokens": 300, "cached_input_tokens": 40, "output_tokens": 60},
}


def test_codex_tells_tokens_and_what_was_done() -> None:
    report = codex.read(_captured(_lines(*CODEX, COMPLETED)))

    assert (report.state, report.usage) == (State.FINISHED, Usage(3, 300, 60, 40))
    assert [entry["role"] for entry in report.transcript] == [
        *("assistant", "assistant", "tool", "tool", "system"),
    ]
    assert report.transcript[3]["input"] == {"changes": ["k.hip"]}
    meter = codex.meter()
    fed = [meter.feed(line) for line in _lines(*CODEX).splitlines()]
    assert [usage.turns for usage in fed if usage] == [2, 3]


@pytest.mark.parametrize(
    ("message", "state"),
    [
        ("unexpected status 401 Unauthorized: no", State.UNAVAILABLE),
        ("exceeded retry limit, last status: 429 Too Many Requests", State.UNAVAILABLE),
        ("You have hit your usage limit.", State.UNAVAILABLE),
        ("the model is confused", State.FAILED),
    ],
)
def test_a_turn_of_codex_that_failed(message: str, state: State) -> None:
    failed = {"type": "turn.failed", "error": {"message": message}}
    report = codex.read(_captured(_lines(*CODEX, failed)))

    assert (report.state, report.message) == (state, message)


def test_codex_waits_for_ever_where_nobody_answers() -> None:
    waiting = "Reconnecting... waiting for network (Connection failed: error sending request)"
    lost = (*CODEX[:1], {"type": "error", "message": waiting})

    assert codex.read(_captured(_lines(*lost), state=State.TIMED_OUT)).state is State.UNAVAILABLE
    late = codex.read(_captured(_lines(*lost, *CODEX[1:]), state=State.TIMED_OUT))
    assert late.state is State.TIMED_OUT


def test_codex_without_a_turn_failed() -> None:
    report = codex.read(_captured(stderr=b"error: unknown flag\n"))

    assert (report.state, report.message) == (State.FAILED, "error: unknown flag")


def _trajectory(home: Path, status: str, last: str = "") -> Captured:
    usage = {"prompt_tokens": 100, "completion_tokens": 20, "prompt_tokens_details": None}
    call = {"function": {"name": "bash", "arguments": '{"command": "ls"}'}}
    messages = [
        {"role": "user", "content": "task"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [call],
            "extra": {"response": {"usage": usage}},
        },
        {"role": "tool", "content": "k.hip"},
        {"role": "exit", "content": last},
    ]
    info = {"model_stats": {"instance_cost": 0.0, "api_calls": 1}, "exit_status": status}
    text = json.dumps({"info": info, "messages": messages})
    (home / mini_swe.TRAJECTORY).write_text(text)
    return _captured(home=home)


@pytest.mark.parametrize(
    ("status", "state"),
    [
        *(("Submitted", State.FINISHED), ("LimitsExceeded", State.BUDGET)),
        *(("AuthenticationError", State.UNAVAILABLE), ("FormatError", State.FAILED)),
    ],
)
def test_mini_swe_agent_leaves_a_trajectory(tmp_path: Path, status: str, state: State) -> None:
    report = mini_swe.read(_trajectory(tmp_path, status, "why"))

    assert (report.state, report.usage) == (state, Usage(1, 100, 20, 0, None))
    assert [entry["role"] for entry in report.transcript] == ["user", "assistant", "tool"]
    assert report.transcript[1]["tool"] == "bash"
    assert report.message == ("" if state is State.FINISHED else f"{status}: why")


def test_mini_swe_agents_steps_are_counted_while_it_runs() -> None:
    line = b"mini-swe-agent (step 2, $0.03):"

    assert mini_swe.meter().feed(line) == Usage(turns=2, dollars=0.03)
    assert mini_swe.meter().feed(b"step") is None
    assert mini_swe.read(_captured(stderr=b"boom")).message == "boom"


CURSOR = (
    {"type": "user", "message": {"content": [{"type": "text", "text": "task"}]}},
    {"type": "assistant", "message": {"content": [{"type": "text", "text": "Looking."}]}},
    {"type": "tool_call", "subtype": "started", "tool_call": {"readToolCall": {}}},
    {
        "type": "tool_call",
        "subtype": "completed",
        "tool_call": {"readToolCall": {"args": {"path": "k.hip"}, "result": "text"}},
    },
)


def test_cursor_tells_what_was_done_and_tokens_if_it_knows_them() -> None:
    result = {"type": "result", "subtype": "success", "is_error": False, "result": "Done."}
    counted = {**result, "usage": {"inputTokens": 10, "outputTokens": 5, "cacheReadTokens": 90}}

    plain = cursor.read(_captured(_lines(*CURSOR, result)))
    report = cursor.read(_captured(_lines(*CURSOR, counted)))

    assert (plain.state, plain.usage) == (State.FINISHED, Usage(turns=2))
    assert report.usage == Usage(2, 100, 5, 90)
    assert [entry["role"] for entry in report.transcript] == ["user", "assistant", "tool"]
    fed = [cursor.meter().feed(line) for line in _lines(*CURSOR).splitlines()]
    assert [usage.turns for usage in fed if usage] == [2]


@pytest.mark.parametrize(
    ("stderr", "state"),
    [(b"Error: Invalid API key\n", State.UNAVAILABLE), (b"segfault\n", State.FAILED)],
)
def test_cursor_without_a_result(stderr: bytes, state: State) -> None:
    assert cursor.read(_captured(stderr=stderr, state=State.FAILED)).state is state


@pytest.mark.parametrize("name", ["claude_code", "codex", "cursor", "mini_swe", "plain"])
@pytest.mark.parametrize(
    "garbage", [b"", b"\xff\xfe\n", b"{" * 5000, b"[]\n3\n", b'{"type": "assistant"}x\n']
)
def test_garbage_is_no_success(name: str, garbage: bytes) -> None:
    found = adapter.load(name)
    found.meter().feed(garbage)
    report = found.read(_captured(garbage, state=State.FAILED))

    assert report.state is State.FAILED
