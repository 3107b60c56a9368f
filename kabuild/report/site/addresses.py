"""Where a page of the site lies. An address depends on what it shows and on nothing else."""

from __future__ import annotations

import re
from hashlib import sha256

_PLAIN = re.compile(r"[a-z0-9_]+(?:[-./][a-z0-9_]+)*")
_LONGEST = 80

INDEX, RECORDS, DATA = "index.html", "records.html", "data.json"


def slug(text: str) -> str:
    """A name for files and addresses; names that differ have slugs that differ.

    A plain name is its own slug, with ``--`` for a slash. Any other, also one that differs from a
    plain one only by its case, ends in ``~`` and a part of its SHA-256.
    """
    if _PLAIN.fullmatch(text) and len(text) <= _LONGEST:
        return text.replace("/", "--")
    known = "-".join(re.findall(r"[a-z0-9_]+", text.lower()))[:_LONGEST]
    return f"{known}~{sha256(text.encode(errors='surrogatepass')).hexdigest()[:16]}"


def task_page(task: str) -> str:
    """The page of a task, by its label."""
    return f"tasks/{slug(task.removeprefix('//'))}.html"


def agent_page(name: str) -> str:
    """The page of an agent, by its name."""
    return f"agents/{slug(name)}.html"


def bundle_page(digest: str) -> str:
    """The page of a bundle, by the SHA-256 of its manifest."""
    return f"bundles/{digest}.html"


def bundle_file(digest: str) -> str:
    """The bundle itself."""
    return f"bundles/{digest}.kab"
