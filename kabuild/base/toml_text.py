"""Strings in TOML.

What the package ``toml`` writes of some, such as those with ``\\x``, is read as another text or not
at all.
"""

from __future__ import annotations

import json


def quoted(text: str) -> str:
    """A basic string that ``tomllib`` reads as ``text``.

    Raises ValueError for a surrogate, as in a file name that is not UTF-8.
    """
    text.encode()
    # JSON and TOML have the same escapes, but TOML does not allow DEL.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
