"""Secrets: variables of the user's environment that an action gets and nothing stores.

Their names are in the action's key; their values go only into the environment of its command. All
outputs are searched for them before they are stored.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import quote, quote_plus

from kabuild.base.errors import InfraError, Reason
from kabuild.model.action import Action

LEAST_LENGTH = 8
"""Shorter values occur by chance, and redacting them would garble results."""

_WIDTHS = (64, 76)
"""Characters of a line of base64: what ``openssl`` and what ``base64`` write."""


class Secrets:
    """The secrets of one action by name, and how to redact them."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self.values = dict(values)
        found = {
            form: name
            for name, value in values.items()
            for part in (value, *_lines(value))
            for form in _forms(part)
        }
        # Longer ones first: one secret may be part of another.
        self._forms = sorted(found.items(), key=lambda item: (-len(item[0]), item[0]))

    @classmethod
    def of(cls, action: Action, environ: Mapping[str, str] | None = None) -> Secrets:
        """The secrets that ``action`` names, from the environment of this process.

        Raises InfraError(NO_SECRET) for a variable that is unset or too short to be found again.
        """
        environ = os.environ if environ is None else environ
        values = {name: environ.get(name, "") for name in action.secrets}
        for name, value in values.items():
            if (what := unfit(value)) is not None:
                raise InfraError(
                    Reason.NO_SECRET,
                    f"{action.label} needs the secret {name}, which {what}",
                    hint=f"export {name}=... before you start kabuild",
                )
        return cls(values)

    def redact(self, data: bytes) -> bytes:
        """``data`` with ``[NAME]`` in place of each secret, in all its encodings.

        The lines of a secret of several lines are redacted, too, since output may arrive line by
        line. Lines shorter than ``LEAST_LENGTH`` remain.
        """
        for form, name in self._forms:
            data = data.replace(form, f"[{name}]".encode())
        return data

    def redact_file(self, path: Path) -> None:
        """Redact a file, if it holds secrets."""
        if not self._forms:
            return
        data = path.read_bytes()
        redacted = self.redact(data)
        if redacted != data:
            path.write_bytes(redacted)


def unfit(value: str) -> str | None:
    """Why a value cannot be found again; None if it can."""
    if not value:
        return "is not set"
    if len(value) < LEAST_LENGTH:
        return f"has fewer than {LEAST_LENGTH} characters"
    if len(value.splitlines()) > 1 and not _lines(value):
        return f"has no line of {LEAST_LENGTH} characters"
    return None


def _lines(value: str) -> tuple[str, ...]:
    """The long enough lines of a value such as a key in PEM; none if it is a single line.

    A line may also end in the two characters ``\\n``: a key within JSON.
    """
    lines = value.replace("\\n", "\n").splitlines()
    found = (line.strip() for line in lines if len(lines) > 1)
    return tuple(line for line in found if len(line) >= LEAST_LENGTH)


def _forms(value: str) -> set[bytes]:
    """The encodings of a value: plain, JSON, URL, base64."""
    raw = value.encode(errors="surrogateescape")
    return {raw, *_in_json(value), *_in_urls(raw), *_in_base64(raw)}


def _in_json(value: str) -> Iterator[bytes]:
    """As part of a JSON string, and of JSON within a JSON string."""
    for ascii_only in (True, False):
        text = value
        for _ in range(2):
            text = json.dumps(text, ensure_ascii=ascii_only)[1:-1]
            yield text.encode(errors="surrogateescape")


def _in_urls(raw: bytes) -> Iterator[bytes]:
    """As part of a path, and of a form."""
    yield quote(raw, safe="").encode()
    yield quote_plus(raw).encode()


def _in_base64(raw: bytes) -> Iterator[bytes]:
    """On one line, whatever precedes it, or by itself on several lines."""
    for before in range(3):
        # The part of the encoding that depends on this value alone.
        text = base64.b64encode(b"\0" * before + raw)
        start = (before * 8 + 5) // 6
        end = (before + len(raw)) * 8 // 6
        parts = [text[start:end]]
        if before == 0:
            parts += [text[i : min(i + w, end)] for w in _WIDTHS for i in range(0, end, w)]
        for part in parts:
            if len(part) >= LEAST_LENGTH:
                yield part
                yield part.replace(b"+", b"-").replace(b"/", b"_")
