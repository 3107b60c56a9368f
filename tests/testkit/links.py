"""The links of a site's pages."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

_LINK = re.compile(r'href="([^"]*)"')


def followed_links(site: Path) -> int:
    """How many links its pages have. Each has to lead to a file and a place of the site."""
    read = cache(Path.read_text)
    count = 0
    for page in sorted(site.rglob("*.html")):
        for link in _LINK.findall(read(page)):
            name, _, place = link.partition("#")
            target = (page.parent / name if name else page).resolve()
            assert target.is_relative_to(site.resolve()), (page, link)
            assert target.is_file(), (page, link)
            assert not place or f'id="{place}"' in read(target), (page, link)
            count += 1
    return count
