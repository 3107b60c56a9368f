"""The model's endpoint, over HTTP, with retries where they may help."""

from __future__ import annotations

import json
import random
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, unique
from functools import cached_property
from http.client import HTTPException
from pathlib import Path

from connection import open_connection, trust
from protocols import PROTOCOLS, Answer, Question, address

_AGAIN = {408, 409, 425, 429}
_DENIED = {401, 403}
_MOST_BYTES = 32 << 20
_LONGEST_WAIT = 60.0
_SAID = 300


@unique
class Trouble(Enum):
    """Why there is no answer: unreachable, not authorised, or the question was refused."""

    DOWN = "down"
    DENIED = "denied"
    REFUSED = "refused"


class EndpointError(Exception):
    """There is no answer, and a retry would not help."""

    def __init__(self, trouble: Trouble, message: str) -> None:
        super().__init__(message)
        self.trouble = trouble


class _PassingError(Exception):
    """A retry may help, after ``wait`` seconds if the server says so."""

    def __init__(self, message: str, wait: float | None = None) -> None:
        super().__init__(message)
        self.wait = wait


@dataclass(frozen=True)
class Address:
    """Where and how a model is asked.

    Attributes:
        url: of the endpoint; without a path, the protocol's is at ``/v1``.
        protocol: ``anthropic`` or ``openai``.
        proxy: URL of the way out, or empty.
        key: the API key; never in any text that leaves this module.
        authorities: a file of certificates to trust instead of the machine's.
    """

    url: str
    protocol: str
    proxy: str = ""
    key: str = ""
    authorities: Path | None = None


@dataclass(frozen=True)
class Patience:
    """Limits of attempts and seconds. ``backoff`` seconds double with each attempt."""

    attempts: int = 5
    timeout: float = 600.0
    backoff: float = 1.0


class Endpoint:
    """Asks one model, each question over its own connection. Safe for many threads."""

    def __init__(
        self,
        where: Address,
        patience: Patience,
        *,
        seed: int = 0,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._where = where
        self._patience = patience
        self._speech = PROTOCOLS[where.protocol]
        self._url = address(where.url, self._speech)
        self._jitter = random.Random(seed)  # noqa: S311 - spreads retries, no secret
        self._sleep = sleep
        self.asked = 0
        self.retries = 0

    def ask(self, question: Question) -> Answer:
        """The answer. Raises EndpointError."""
        body = json.dumps(self._speech.body(question)).encode()
        attempts = self._patience.attempts
        self.asked += 1
        for attempt in range(attempts):
            try:
                return self._try(body)
            except _PassingError as error:
                if attempt == attempts - 1:
                    raise EndpointError(
                        Trouble.DOWN, f"{self._where.url}: {error}, {attempts} times"
                    ) from error
                self.retries += 1
                self._sleep(self._wait(attempt, error.wait))
        raise AssertionError("at least one attempt is needed")

    def _wait(self, attempt: int, told: float | None) -> float:
        if told is not None:
            return min(told, _LONGEST_WAIT)
        spread = 0.5 + self._jitter.random()
        return float(min(self._patience.backoff * 2**attempt * spread, _LONGEST_WAIT))

    def _try(self, body: bytes) -> Answer:
        status, headers, data = self._post(body)
        if status in _AGAIN or status >= 500:
            raise _PassingError(self._said(status, data), _seconds(headers.get("retry-after", "")))
        if status in _DENIED:
            raise EndpointError(Trouble.DENIED, f"{self._where.url}: {self._said(status, data)}")
        if status != 200:
            raise EndpointError(Trouble.REFUSED, f"{self._where.url}: {self._said(status, data)}")
        try:
            answer = self._speech.read(json.loads(data))
        except (ValueError, RecursionError) as error:
            raise _PassingError(self._clean(f"no answer: {error}")) from error
        return Answer(self._clean(answer.text), answer.is_cut, answer.cost)

    def _post(self, body: bytes) -> tuple[int, Mapping[str, str], bytes]:
        headers = {"Content-Type": "application/json", **self._speech.headers(self._where.key)}
        path = "/" + self._url.split("://", 1)[-1].partition("/")[2]
        try:
            connection = open_connection(
                self._url, self._where.proxy, self._patience.timeout, self._context
            )
        except ValueError as error:
            raise EndpointError(Trouble.REFUSED, str(error)) from error
        try:
            connection.request("POST", path, body, headers)
            response = connection.getresponse()
            data = response.read(_MOST_BYTES + 1)
            told = {name.lower(): value for name, value in response.getheaders()}
        except ssl.SSLCertVerificationError as error:
            message = f"{self._where.url}: its certificate is not trusted: {error.verify_message}"
            raise EndpointError(Trouble.REFUSED, message) from error
        except (OSError, HTTPException) as error:
            said = str(error) or type(error).__name__
            raise _PassingError(self._clean(f"cannot be reached: {said}")) from error
        finally:
            connection.close()
        if len(data) > _MOST_BYTES:
            raise _PassingError("its answer is too long")
        return response.status, told, data

    @cached_property
    def _context(self) -> ssl.SSLContext | None:
        return trust(self._where.authorities) if self._url.startswith("https:") else None

    def _said(self, status: int, data: bytes) -> str:
        """The server's reason for a refusal, for people."""
        try:
            error = json.loads(data)["error"]
            text = error["message"] if isinstance(error, dict) else error
        except (ValueError, KeyError, TypeError, RecursionError):
            text = data.decode(errors="replace")
        return self._clean(f"status {status}: {' '.join(str(text).split())[:_SAID]}")

    def _clean(self, text: str) -> str:
        """``text`` without the key, which a server may echo."""
        return text.replace(self._where.key, "[key]") if self._where.key else text


def _seconds(text: str) -> float | None:
    """The header Retry-After; dates are not read."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value < float("inf") else None
