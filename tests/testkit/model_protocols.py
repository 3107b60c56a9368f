"""The wire protocols of models, as a scripted model speaks them; see ``model_server.py``.

A protocol knows which tools a request offers, how often the model has spoken in the conversation
that it shows, and how an answer looks, whole and as a stream. Self-contained.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]

SHELLS: Mapping[str, Callable[[str], Json]] = {
    "Bash": lambda command: {"command": command, "description": "scripted"},
    "bash": lambda command: {"command": command},
    "shell": lambda command: {"command": ["bash", "-lc", command]},
    "shell_command": lambda command: {"command": command},
    "exec_command": lambda command: {"cmd": command},
}
"""How the tools that run a shell command want it, by their names."""


@dataclass(frozen=True)
class Turn:
    """One answer of the model.

    Attributes:
        text: what it says.
        run: a shell command, for whatever tool of that kind the request offers.
        tool, given: or any tool by name, with its input.
        status, error: or an HTTP error in place of an answer.
        cut: whether the connection breaks off in the middle of it.
        input_tokens, output_tokens, cached_tokens: what it reports to have used.
    """

    text: str = ""
    run: str = ""
    tool: str = ""
    given: Json = field(default_factory=dict, hash=False)
    status: int = 200
    error: str = ""
    cut: bool = False
    input_tokens: int = 100
    output_tokens: int = 20
    cached_tokens: int = 0

    def call(self, offered: Sequence[str]) -> tuple[str, Json] | None:
        """The tool call: name and input; None without one, or where nothing such is offered."""
        if self.tool:
            return self.tool, self.given
        shell = next((name for name in SHELLS if name in offered), "") if self.run else ""
        return (shell, SHELLS[shell](self.run)) if shell else None


Event = tuple[str, Json]
"""An event of a stream: its name, empty where the protocol has none, and its data."""


class Messages:
    """Anthropic's ``/v1/messages``."""

    @staticmethod
    def offered(body: Json) -> list[str]:
        """The names of the tools."""
        return [tool.get("name", "") for tool in body.get("tools") or ()]

    @staticmethod
    def depth(body: Json) -> int:
        """How often the model has spoken."""
        return sum(message["role"] == "assistant" for message in body["messages"])

    @staticmethod
    def answer(turn: Turn, body: Json, number: int) -> Json:
        """The whole answer."""
        content: list[Json] = [{"type": "text", "text": turn.text}] if turn.text else []
        call = turn.call(Messages.offered(body))
        if call:
            name, given = call
            content.append(
                {"type": "tool_use", "id": f"toolu_{number:04}", "name": name, "input": given}
            )
        return {
            "id": f"msg_{number:04}",
            "type": "message",
            "role": "assistant",
            "model": body.get("model", ""),
            "content": content,
            "stop_reason": "tool_use" if call else "end_turn",
            "stop_sequence": None,
            "usage": {
                "input_tokens": turn.input_tokens - turn.cached_tokens,
                "cache_read_input_tokens": turn.cached_tokens,
                "cache_creation_input_tokens": 0,
                "output_tokens": turn.output_tokens,
            },
        }

    @staticmethod
    def events(answer: Json, body: Json) -> Iterator[Event]:
        """The answer as a stream."""
        start = {**answer, "content": [], "stop_reason": None}
        yield "message_start", {"message": start}
        for index, block in enumerate(answer["content"]):
            if block["type"] == "text":
                empty: Json = {"type": "text", "text": ""}
                delta = {"type": "text_delta", "text": block["text"]}
            else:
                empty = {**block, "input": {}}
                delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
            yield "content_block_start", {"index": index, "content_block": empty}
            yield "content_block_delta", {"index": index, "delta": delta}
            yield "content_block_stop", {"index": index}
        ending = {"stop_reason": answer["stop_reason"], "stop_sequence": None}
        yield "message_delta", {"delta": ending, "usage": answer["usage"]}
        yield "message_stop", {}

    @staticmethod
    def error(turn: Turn) -> Json:
        """The body of an HTTP error."""
        kinds = {401: "authentication_error", 429: "rate_limit_error", 529: "overloaded_error"}
        kind = kinds.get(turn.status, "invalid_request_error" if turn.status < 500 else "api_error")
        return {"type": "error", "error": {"type": kind, "message": turn.error}}


class Responses:
    """OpenAI's ``/v1/responses``."""

    @staticmethod
    def offered(body: Json) -> list[str]:
        """The names of the tools."""
        return [tool.get("name") or tool.get("type", "") for tool in body.get("tools") or ()]

    @staticmethod
    def depth(body: Json) -> int:
        """How often the model has spoken: items of its own that follow each other are one turn."""
        given = body["input"]
        if isinstance(given, str):
            return 0
        own = [
            item.get("role") == "assistant" or item.get("type", "").endswith("_call")
            for item in given
            if item.get("type") != "reasoning"
        ]
        return sum(now and not before for before, now in zip([False, *own], own, strict=False))

    @staticmethod
    def answer(turn: Turn, body: Json, number: int) -> Json:
        """The whole answer."""
        output: list[Json] = []
        if turn.text:
            text = {"type": "output_text", "text": turn.text, "annotations": []}
            output.append(
                {
                    "type": "message",
                    "id": f"msg_{number:04}",
                    "role": "assistant",
                    "status": "completed",
                    "content": [text],
                }
            )
        call = turn.call(Responses.offered(body))
        if call:
            name, given = call
            output.append(_item(body, number, name, given))
        return {
            "id": f"resp_{number:04}",
            "object": "response",
            "created_at": 0,
            "status": "completed",
            "model": body.get("model", ""),
            "output": output,
            "usage": {
                "input_tokens": turn.input_tokens,
                "input_tokens_details": {"cached_tokens": turn.cached_tokens},
                "output_tokens": turn.output_tokens,
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": turn.input_tokens + turn.output_tokens,
            },
        }

    @staticmethod
    def events(answer: Json, body: Json) -> Iterator[Event]:
        """The answer as a stream."""
        start = {**answer, "status": "in_progress", "output": [], "usage": None}
        yield "response.created", {"response": start}
        for index, item in enumerate(answer["output"]):
            yield "response.output_item.added", {"output_index": index, "item": item}
            for part in item.get("content", ()):
                place = {"item_id": item["id"], "output_index": index, "content_index": 0}
                yield "response.output_text.delta", {**place, "delta": part["text"]}
            yield "response.output_item.done", {"output_index": index, "item": item}
        yield "response.completed", {"response": answer}

    @staticmethod
    def error(turn: Turn) -> Json:
        """The body of an HTTP error."""
        return {"error": {"message": turn.error, "type": "error", "code": str(turn.status)}}


def _item(body: Json, number: int, name: str, given: Json) -> Json:
    """A call in a response: tools of the type ``custom`` take a text, ``input``."""
    custom = {tool.get("name") for tool in body.get("tools") or () if tool.get("type") == "custom"}
    ids = {"id": f"fc_{number:04}", "call_id": f"call_{number:04}", "status": "completed"}
    if name in custom:
        return {"type": "custom_tool_call", **ids, "name": name, "input": given["input"]}
    return {"type": "function_call", **ids, "name": name, "arguments": json.dumps(given)}


class Chat:
    """OpenAI's ``/v1/chat/completions``."""

    @staticmethod
    def offered(body: Json) -> list[str]:
        """The names of the tools."""
        return [tool["function"]["name"] for tool in body.get("tools") or ()]

    @staticmethod
    def depth(body: Json) -> int:
        """How often the model has spoken."""
        return sum(message["role"] == "assistant" for message in body["messages"])

    @staticmethod
    def answer(turn: Turn, body: Json, number: int) -> Json:
        """The whole answer."""
        message: Json = {"role": "assistant", "content": turn.text or None}
        call = turn.call(Chat.offered(body))
        if call:
            function = {"name": call[0], "arguments": json.dumps(call[1])}
            message["tool_calls"] = [
                {"id": f"call_{number:04}", "type": "function", "function": function}
            ]
        finish = "tool_calls" if call else "stop"
        return {
            "id": f"chatcmpl-{number:04}",
            "object": "chat.completion",
            "created": 0,
            "model": body.get("model", ""),
            "choices": [{"index": 0, "message": message, "finish_reason": finish}],
            "usage": {
                "prompt_tokens": turn.input_tokens,
                "prompt_tokens_details": {"cached_tokens": turn.cached_tokens},
                "completion_tokens": turn.output_tokens,
                "total_tokens": turn.input_tokens + turn.output_tokens,
            },
        }

    @staticmethod
    def events(answer: Json, body: Json) -> Iterator[Event]:
        """The answer as a stream."""
        chunk = {**answer, "object": "chat.completion.chunk"}
        usage = chunk.pop("usage")
        choice = answer["choices"][0]
        delta = dict(choice["message"])
        if "tool_calls" in delta:
            delta["tool_calls"] = [{"index": 0, **call} for call in delta["tool_calls"]]
        ending: tuple[Json, str] = ({}, choice["finish_reason"])
        for part, finish in ((delta, None), ending):
            yield "", {**chunk, "choices": [{"index": 0, "delta": part, "finish_reason": finish}]}
        if (body.get("stream_options") or {}).get("include_usage"):
            yield "", {**chunk, "choices": [], "usage": usage}

    error = Responses.error


PROTOCOLS: Mapping[str, type[Messages | Responses | Chat]] = {
    "/messages": Messages,
    "/responses": Responses,
    "/chat/completions": Chat,
}
