"""Errors of the operating system while storing, in words for users."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from kabuild.base.errors import Reason, StoreError

_FULL = {errno.ENOSPC, errno.EDQUOT}
_REFUSED = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR}
_HINT = "set KABUILD_CACHE to a directory that you can write, or make this one writable"


@contextmanager
def writing(root: str) -> Iterator[None]:
    """Turn an ``OSError`` of the body into a StoreError that names the store at ``root``."""
    try:
        yield
    except OSError as error:
        raise store_error(error, root) from error


def store_error(error: OSError, root: str) -> StoreError:
    """``error`` as STORE_FULL or STORE_UNWRITABLE."""
    why = error.strerror or str(error)
    if error.errno == errno.EFBIG:
        return StoreError(
            Reason.STORE_FULL,
            f"a file of the store at {root} would be larger than this process may write: {why}",
            hint="raise the limit: ulimit -f unlimited",
        )
    if error.errno in _FULL:
        return StoreError(
            Reason.STORE_FULL,
            f"the store at {root} is full: {why}",
            hint="remove what is old: kabuild cache gc --max_size=SIZE ('kabuild cache stats' has "
            "the size); free other space; or set KABUILD_CACHE to another disk",
        )
    if error.errno in _REFUSED:
        return StoreError(
            Reason.STORE_UNWRITABLE, f"the store at {root} cannot be written: {why}", hint=_HINT
        )
    where = f" ({error.filename})" if error.filename else ""
    return StoreError(
        Reason.STORE_UNWRITABLE, f"the store at {root} failed: {why}{where}", hint=_HINT
    )
