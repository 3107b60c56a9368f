"""The templates of pages: their filters, their style and their script.

Pages have no other source of style or code than these two texts, by their policy.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from kabuild.base.printing import escaped
from kabuild.report.exports import share, times_faster
from kabuild.report.judgement import unjudged
from kabuild.report.page.entries import in_order
from kabuild.report.page.svg import anchor, quantity, series
from kabuild.report.times import nanoseconds

_TEXT = 20000
_ENTRIES = 2000
_BETWEEN = re.compile(r"(?<=[^/])/|_")


def environment(*packages: str, scope: str = "page") -> Environment:
    """Templates of ``packages``, then those of reports.

    What comes from kernels and agents is text in them and never code. ``scope`` is what a reader
    calls all that is shown together.
    """
    made = Environment(
        loader=ChoiceLoader([PackageLoader(name) for name in (*packages, "kabuild.report.page")]),
        autoescape=True,
        finalize=_shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "share": share,
        "times": times_faster,
        "nanoseconds": nanoseconds,
        "anchor": anchor,
        "series": series,
        "quantity": quantity,
        "in_order": in_order,
        "unjudged": unjudged,
        "count": count,
        "wrapped": wrapped,
        "clip": lambda text: text if len(text) <= _TEXT else f"{text[:_TEXT]}\n[...]",
        "beginning": lambda items: items[:_ENTRIES],
        "said": said,
        "pretty": pretty,
    }
    style, script = (_source(made, name) for name in ("style.css", "script.js"))
    made.globals |= {
        "scope": scope,
        "style": Markup(style),  # noqa: S704 - ours
        "script": Markup(script),  # noqa: S704 - ours
        "style_hash": _hash(style),
        "script_hash": _hash(script),
    }
    return made


def pretty(value: object) -> str:
    """A value as JSON for people."""
    return json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True)


def said(entry: Mapping[str, Any]) -> str:
    """What was said or done by an entry of a transcript, in which an agent may write anything."""
    text = entry.get("text")
    return text if text and isinstance(text, str) else pretty(entry)


def count(number: int, noun: str) -> str:
    """``1 task``, ``2 tasks``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def wrapped(label: str) -> Markup:
    """A label that a narrow column breaks behind a slash or an underscore."""
    return Markup(_BETWEEN.sub(r"\g<0><wbr>", str(escape(escaped(label)))))  # noqa: S704 - escaped


def _shown(value: object) -> object:
    """Text of others without what acts or hides, such as marks that turn a line of code around."""
    plain = isinstance(value, str) and not isinstance(value, Markup)
    return escaped(value) if plain else value  # type: ignore[arg-type]


def _source(environment: Environment, name: str) -> str:
    assert environment.loader
    return environment.loader.get_source(environment, name)[0]


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
