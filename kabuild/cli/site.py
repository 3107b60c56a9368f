"""``kabuild site``: a leaderboard of bundles, as pages that can be hosted anywhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from kabuild.cli.bundle_flags import UnpackFlags
from kabuild.cli.evaluations import known_gates
from kabuild.cli.listing import listed, with_signer
from kabuild.cli.options import argument, flag, takes
from kabuild.cli.types import InputPath, unwritable
from kabuild.report.site.addresses import bundle_file
from kabuild.report.site.directory import check_directory, write_site
from kabuild.report.site.listed import Listed, listed_once
from kabuild.store import Store


@dataclass(frozen=True, kw_only=True)
class SiteFlags(UnpackFlags):
    """The options of ``kabuild site``."""

    bundles: tuple[Path, ...] = argument(
        metavar="BUNDLE...", nargs=-1, required=True, type=InputPath()
    )
    output: Path = flag(
        "--output",
        "-o",
        required=True,
        type=InputPath(),
        metavar="DIR",
        help="The directory to write; an older site in it is replaced.",
    )
    title: str = flag(
        "--title", default="Kernel leaderboard", show_default=True, help="The title of the site."
    )


@click.command("site")
@takes(SiteFlags)
def command(options: SiteFlags) -> None:
    """Write a leaderboard of published evaluations as static pages.

    \b
    kabuild site results/h200/*.kab -o public
    kabuild site theirs.kab ours.kab -o public --title="Softmax on MI300X"

    Name the bundles in the order in which they were published. The pages need no server and no
    network. Each bundle becomes a part of the site, with its signature (BUNDLE.sig, which is
    checked) and its replay (BUNDLE.replay.json, from 'kabuild replay --json'), so that anyone
    can rerun it.
    """
    from kabuild.report.page.environment import count
    from kabuild.report.site.pages import Pages

    output = options.output
    try:
        check_directory(output)
    except OSError as error:
        raise unwritable("--output", output, error) from None
    known = known_gates()
    with Store.open() as store:
        found = [listed(path, store, known, options.max_bytes) for path in options.bundles]
        items = [with_signer(item) for item in listed_once(found)]
        pages = [*Pages(items, options.title).all()]
        try:
            write_site(output, [*pages, *_bundles(items)])
        except OSError as error:
            raise unwritable("--output", output, error) from None
    made = f"{count(len(pages) - 1, 'page')} of {count(len(items), 'bundle')}"
    click.echo(f"{output / 'index.html'}: {made}")


def _bundles(items: Sequence[Listed]) -> Iterator[tuple[str, Path]]:
    """The bundles themselves, and what lies beside them."""
    for item in items:
        yield bundle_file(item.digest), item.file
        for suffix, file in item.beside.items():
            yield bundle_file(item.digest) + suffix, file
