"""Secrets: variables that an action gets from the user's environment, and that nothing keeps.

Their names are in the key of the action; their values go into the environment of its command
and nowhere else. Whatever the command leaves behind is searched for them before it is stored.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

from kabuild.base.errors import InfraError, Reason
from kabuild.model.action import Action

LEAST_LENGTH = 8
"""What is shorter occurs by chance, and blotting it out would garble results."""


class Secrets:
    """The secrets of one action by name, and how to blot them out."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self.values = dict(values)
        found = {form: name for name, value in values.items() for form in _forms(value)}
        # Longer ones first: one secret may be part of another.
        self._forms = sorted(found.items(), key=lambda item: (-len(item[0]), item[0]))

    @classmethod
    def of(cls, action: Action, environ: Mapping[str, str] | None = None) -> Secrets:
        """What ``action`` names, from the environment of this process.

        Raises InfraError(NO_SECRET) for a variable that is not set, or too short to be found
        again.
        """
        environ = os.environ if environ is None else environ
        values = {name: environ.get(name, "") for name in action.secrets}
        for name, value in values.items():
            if len(value) < LEAST_LENGTH:
                what = "is not set" if not value else f"has fewer than {LEAST_LENGTH} characters"
                raise InfraError(
                    Reason.NO_SECRET,
                    f"{action.label} needs the secret {name}, which {what}",
                    hint=f"export {name}=... before you start kabuild",
                )
        return cls(values)

    def redact(self, data: bytes) -> bytes:
        """``data`` with ``[NAME]`` in place of each secret, however it is written."""
        for form, name in self._forms:
            data = data.replace(form, f"[{name}]".encode())
        return data

    def redact_file(self, path: Path) -> None:
        """Blot secrets out of a file, if it holds any."""
        if not self._forms:
            return
        data = path.read_bytes()
        redacted = self.redact(data)
        if redacted != data:
            path.write_bytes(redacted)


def _forms(value: str) -> set[bytes]:
    """How a value may be written: as it is, in JSON, in a URL, in base64 whatever precedes it."""
    raw = value.encode(errors="surrogateescape")
    plain = {raw, json.dumps(value)[1:-1].encode(), quote(value, safe="").encode()}
    encoded = set()
    for before in range(3):
        # What of the encoding depends on this value alone.
        text = base64.b64encode(b"\0" * before + raw)
        start = (before * 8 + 5) // 6
        end = (before + len(raw)) * 8 // 6
        encoded |= {text[start:end], text[start:end].replace(b"+", b"-").replace(b"/", b"_")}
    return plain | {form for form in encoded if len(form) >= LEAST_LENGTH}
