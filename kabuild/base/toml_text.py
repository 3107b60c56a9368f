"""Texts as TOML has them.

What the package ``toml`` writes of some, such as those with ``\\x``, is read as another text or not
at all.
"""

from __future__ import annotations

import json


def quoted(text: str) -> str:
    """A basic string that ``tomllib`` reads as ``text``.

    Raises ValueError for half a character, as in a file's name that is not UTF-8.
    """
    text.encode()
    # JSON's escapes are TOML's; only DEL may stand in the one and not in the other.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
