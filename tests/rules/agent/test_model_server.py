"""The scripted model speaks the protocols as their clients expect it."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.testkit.model_server import OUT_OF_TURNS, ModelServer, Script, Turn

KEY = "correct-horse"
SCRIPT = Script(
    (
        Turn("Looking.", run="ls", cached_tokens=40),
        Turn(tool="Edit", given={"path": "k.hip", "input": "*** patch"}),
        Turn("Done.", output_tokens=7),
    ),
    key=KEY,
)
SHELL: dict[str, Any] = {"name": "Bash", "input_schema": {}}
FUNCTION: dict[str, Any] = {"type": "function", "name": "exec_command"}
PATCH: dict[str, Any] = {"type": "custom", "name": "Edit"}
CHAT_TOOL: dict[str, Any] = {"type": "function", "function": {"name": "bash"}}


def _post(server: ModelServer, path: str, body: dict[str, Any], key: str = KEY) -> bytes:
    request = urllib.request.Request(
        f"{server.url}{path}", json.dumps(body).encode(), {"Authorization": f"Bearer {key}"}
    )
    with urllib.request.urlopen(request, timeout=120) as response:
        data: bytes = response.read()
        return data


def _ask(server: ModelServer, path: str, body: dict[str, Any]) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(_post(server, path, body))
    return value


def _events(server: ModelServer, path: str, body: dict[str, Any]) -> list[Any]:
    lines = _post(server, path, {**body, "stream": True}).decode().splitlines()
    data = [line.removeprefix("data: ") for line in lines if line.startswith("data: ")]
    return [json.loads(item) if item != "[DONE]" else item for item in data]


def test_anthropics_messages() -> None:
    body: dict[str, Any] = {"messages": [{"role": "user"}], "tools": [SHELL]}
    with ModelServer(SCRIPT) as server:
        whole = _ask(server, "/v1/messages", body)
        events = _events(server, "/v1/messages", body)
        last = {"messages": [{"role": "assistant"}] * 2}

        assert whole["content"][1]["input"]["command"] == "ls"
        assert whole["usage"]["input_tokens"] + whole["usage"]["cache_read_input_tokens"] == 100
        assert _ask(server, "/messages", last)["content"] == [{"type": "text", "text": "Done."}]
        assert _ask(server, "/v1/messages/count_tokens", {})["input_tokens"] > 0
    kinds = [event["type"] for event in events]
    assert (kinds[0], kinds[-2:]) == ("message_start", ["message_delta", "message_stop"])
    deltas = [event["delta"] for event in events if event["type"] == "content_block_delta"]
    assert deltas[0]["text"] == "Looking."
    assert json.loads(deltas[1]["partial_json"])["command"] == "ls"


def test_openais_responses() -> None:
    body: dict[str, Any] = {"input": [{"role": "user"}], "tools": [FUNCTION, PATCH]}
    with ModelServer(SCRIPT) as server:
        first = _ask(server, "/v1/responses", body)
        said = [*body["input"], *first["output"], {"type": "function_call_output"}]
        second = _ask(server, "/v1/responses", {**body, "input": said})
        said += [{"type": "reasoning"}, *second["output"], {"type": "custom_tool_call_output"}]
        events = _events(server, "/v1/responses", {**body, "input": said})

        assert json.loads(first["output"][1]["arguments"]) == {"cmd": "ls"}
        assert first["usage"]["input_tokens_details"]["cached_tokens"] == 40
        assert second["output"][0]["type"] == "custom_tool_call"
        assert second["output"][0]["input"] == "*** patch"
        assert _ask(server, "/v1/responses", {"input": "hello"})["output"][0]["type"] == "message"
    assert events[0]["type"] == "response.created"
    assert events[-1]["response"]["output"][0]["content"][0]["text"] == "Done."


def test_openais_chat() -> None:
    body: dict[str, Any] = {"messages": [{"role": "user"}], "tools": [CHAT_TOOL]}
    with ModelServer(SCRIPT) as server:
        message = _ask(server, "/v1/chat/completions", body)["choices"][0]["message"]
        events = _events(server, "/v1/chat/completions", {**body, "stream_options": None})
        counted = _events(
            server, "/v1/chat/completions", {**body, "stream_options": {"include_usage": True}}
        )

    assert json.loads(message["tool_calls"][0]["function"]["arguments"]) == {"command": "ls"}
    assert events[0]["choices"][0]["delta"]["tool_calls"][0]["index"] == 0
    assert events[-1] == "[DONE]"
    assert "usage" not in events[-2]
    assert counted[-2]["usage"]["completion_tokens"] == 20


def test_turns_by_request_and_after_the_last_one() -> None:
    with ModelServer(Script((Turn("one"), Turn("two")), by="request")) as server:
        body: dict[str, Any] = {"messages": []}
        said = [
            _ask(server, "/v1/chat/completions", body)["choices"][0]["message"]["content"]
            for _ in range(3)
        ]

        assert said == ["one", "two", OUT_OF_TURNS]
        assert [request.body for request in server.requests] == [body] * 3


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/responses", "/v1/chat/completions"])
def test_errors_and_wrong_keys_are_http_errors_with_a_body(path: str) -> None:
    body: dict[str, Any] = {"messages": [], "input": []}
    script = Script((Turn(status=429, error="slower"),), key=KEY)
    with ModelServer(script) as server:
        for key, status in ((KEY, 429), ("other", 401)):
            with pytest.raises(urllib.error.HTTPError) as caught:
                _post(server, path, body, key)
            assert caught.value.code == status
            assert json.loads(caught.value.read())["error"]["message"]
        with pytest.raises(urllib.error.HTTPError, match="404"):
            _post(server, "/v1/embeddings", body)


def test_an_answer_may_break_off() -> None:
    with ModelServer(Script((Turn("hello", cut=True),))) as server:
        events = _events(server, "/v1/messages", {"messages": []})

    assert [event["type"] for event in events] == ["message_start"]


def test_a_script_is_read_from_json(tmp_path: Path) -> None:
    (tmp_path / "script.json").write_text('{"key": "k", "turns": [{"text": "a"}, {"run": "ls"}]}')

    script = Script.load(tmp_path / "script.json")

    assert script == Script((Turn("a"), Turn(run="ls")), key="k")
    assert script.turn(5).text == OUT_OF_TURNS
