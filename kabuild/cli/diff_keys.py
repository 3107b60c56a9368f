"""``kabuild diff-keys``: what differs between two keys."""

from __future__ import annotations

import click

from kabuild.report.why import render_differences
from kabuild.store import Store
from kabuild.store.contents import find_blob


@click.command("diff-keys")
@click.argument("old")
@click.argument("new")
def command(*, old: str, new: str) -> None:
    """Show what differs between two keys: settings, inputs, and lines of text inputs.

    \b
    kabuild diff-keys 3f2a... 9c41...

    'kabuild aquery', 'kabuild why' and '--json' print keys. A unique prefix is enough.
    """
    with Store.open() as store:
        keys = [find_blob(store.root, prefix) for prefix in (old, new)]
        click.echo(render_differences(keys[0], keys[1], store.cas), nl=False)
