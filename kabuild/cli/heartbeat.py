"""Progress messages for long operations that print nothing."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import click

from kabuild.base import threads

EVERY = 3.0


@contextmanager
def said_when_slow(what: str, every: float = EVERY) -> Iterator[None]:
    """Print ``what`` on stderr every ``every`` seconds while the block runs."""
    done = threading.Event()
    began = time.monotonic()

    def say() -> None:
        while not done.wait(every):
            click.echo(f"{what}: {time.monotonic() - began:.0f} s so far", err=True)

    thread = threading.Thread(target=say, daemon=True)
    threads.start(thread)
    try:
        yield
    finally:
        done.set()
        thread.join()
