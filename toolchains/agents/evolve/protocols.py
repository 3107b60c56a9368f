"""The two protocols of models' APIs, as pure functions of requests and replies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import urlsplit

from budget import Cost

Json = dict[str, Any]


class AnswerError(ValueError):
    """A reply does not follow the protocol."""


@dataclass(frozen=True)
class Question:
    """A question: its constant part and its own. ``tokens`` limits the reply; 0 means no limit."""

    model: str
    system: str
    text: str
    tokens: int = 0


@dataclass(frozen=True)
class Answer:
    """The model's answer. ``is_cut`` if it was cut off at the limit of tokens."""

    text: str
    is_cut: bool
    cost: Cost


class Speech(Protocol):
    """One protocol."""

    path: str

    def headers(self, key: str) -> Mapping[str, str]:
        """How a request is authorised; ``key`` may be empty."""

    def body(self, question: Question) -> Json:
        """The request."""

    def read(self, body: Json) -> Answer:
        """The answer. Raises AnswerError."""


class Anthropic:
    """``/v1/messages``. The constant part is marked for the provider's cache."""

    path = "/messages"
    _MOST_TOKENS = 16384  # required by this protocol

    def headers(self, key: str) -> Mapping[str, str]:
        """The key and the version of the protocol."""
        return {"anthropic-version": "2023-06-01", **({"x-api-key": key} if key else {})}

    def body(self, question: Question) -> Json:
        """One user message."""
        constant = {
            "type": "text",
            "text": question.system,
            "cache_control": {"type": "ephemeral"},
        }
        return {
            "model": question.model,
            "max_tokens": question.tokens or self._MOST_TOKENS,
            "system": [constant],
            "messages": [{"role": "user", "content": question.text}],
        }

    def read(self, body: Json) -> Answer:
        """The text of all blocks."""
        try:
            blocks = [block["text"] for block in body["content"] if block["type"] == "text"]
            usage = body.get("usage") or {}
            cached = _count(usage, "cache_read_input_tokens")
            written = _count(usage, "cache_creation_input_tokens")
            sent = _count(usage, "input_tokens") + cached + written
            cost = Cost(sent, cached, _count(usage, "output_tokens"))
            return Answer("".join(blocks), body.get("stop_reason") == "max_tokens", cost)
        except (KeyError, TypeError, AttributeError) as error:
            raise AnswerError(f"no answer of this protocol: {error!r}") from error


class OpenAI:
    """``/v1/chat/completions``, which many servers speak."""

    path = "/chat/completions"

    def headers(self, key: str) -> Mapping[str, str]:
        """The key."""
        return {"Authorization": f"Bearer {key}"} if key else {}

    def body(self, question: Question) -> Json:
        """One system message and one user message."""
        limit = {"max_completion_tokens": question.tokens} if question.tokens else {}
        return {
            "model": question.model,
            "messages": [
                {"role": "system", "content": question.system},
                {"role": "user", "content": question.text},
            ],
            **limit,
        }

    def read(self, body: Json) -> Answer:
        """The text of the first choice."""
        try:
            choice = body["choices"][0]
            text = choice["message"].get("content") or ""
            if not isinstance(text, str):
                raise AnswerError("the reply does not follow the protocol: its content is not text")
            usage = body.get("usage") or {}
            cached = _count(usage.get("prompt_tokens_details") or {}, "cached_tokens")
            cost = Cost(_count(usage, "prompt_tokens"), cached, _count(usage, "completion_tokens"))
            return Answer(text, choice.get("finish_reason") == "length", cost)
        except (KeyError, TypeError, IndexError, AttributeError) as error:
            raise AnswerError(f"no answer of this protocol: {error!r}") from error


PROTOCOLS: Mapping[str, Speech] = {"anthropic": Anthropic(), "openai": OpenAI()}


def address(endpoint: str, speech: Speech) -> str:
    """The URL for questions: an endpoint without a path has the protocol at ``/v1``."""
    base = endpoint.rstrip("/")
    return f"{base}{speech.path}" if urlsplit(base).path else f"{base}/v1{speech.path}"


def _count(usage: Mapping[str, Any], name: str) -> int:
    """A number of tokens; 0 for anything else."""
    value = usage.get(name)
    is_count = isinstance(value, int) and not isinstance(value, bool) and value > 0
    return value if is_count and isinstance(value, int) else 0
