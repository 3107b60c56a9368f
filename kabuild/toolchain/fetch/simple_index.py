"""Python's simple repository API: the files of a project, as JSON or HTML."""

from __future__ import annotations

from dataclasses import dataclass
from html.parser import HTMLParser
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin

from kabuild.base.bounded_json import read_json
from kabuild.toolchain.fetch.http import Http

_JSON = "application/vnd.pypi.simple.v1+json"
_ACCEPT = f"{_JSON}, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1"


@dataclass(frozen=True)
class IndexFile:
    """One file of a project: name, URL, and digest and size if the index has them."""

    name: str
    url: str
    sha256: str = ""
    size: int | None = None
    yanked: bool = False


def project_files(http: Http, index: str, project: str) -> list[IndexFile]:
    """The files of a project.

    Raises ``http.FAILURES`` and, for a malformed answer, ``ValueError``.
    """
    url = f"{index}/{project}/"
    if url.startswith("file:"):
        url += "index.html"
    with http.open(url, Accept=_ACCEPT) as response:
        kind = response.headers.get_content_type()
        body = response.read()
        base = response.geturl()
    return _from_json(body, base) if kind == _JSON else _from_html(body.decode(), base)


def _from_json(body: bytes, base: str) -> list[IndexFile]:
    data: dict[str, Any] = read_json(body)
    try:
        return [
            IndexFile(
                item["filename"],
                urljoin(base, item["url"]),
                item.get("hashes", {}).get("sha256", ""),
                item.get("size"),
                bool(item.get("yanked")),
            )
            for item in data["files"]
        ]
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"no list of files: {error}") from None


def _from_html(body: str, base: str) -> list[IndexFile]:
    parser = _Links(base)
    parser.feed(body)
    return parser.files


class _Links(HTMLParser):
    """Collects the anchors of a page."""

    def __init__(self, base: str) -> None:
        super().__init__()
        self.files: list[IndexFile] = []
        self._base = base

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag == "base" and values.get("href"):
            self._base = urljoin(self._base, values["href"] or "")
        if tag != "a" or not values.get("href"):
            return
        url, fragment = urldefrag(urljoin(self._base, values["href"] or ""))
        algorithm, _, digest = fragment.partition("=")
        name = unquote(url.rpartition("/")[2])
        sha256 = digest if algorithm == "sha256" else ""
        self.files.append(IndexFile(name, url, sha256, None, "data-yanked" in values))
