"""``out/``: disposable views of the store, for people and their tools."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from pathlib import Path

from kabuild.base.errors import Reason, StoreError, UsageError
from kabuild.base.fs import is_inside
from kabuild.base.own_files import write_own
from kabuild.base.reading import read_plain
from kabuild.model.digest import Digest
from kabuild.model.graph import ActionGraph
from kabuild.model.label import Label
from kabuild.model.result import ActionResult, Outcome, Settled

Link = Callable[[Digest, Path], None]
_MARK = ".key"


def view_of(out: Path, label: Label) -> Path:
    """The path of an action's outputs: ``out/tasks/hip2hip/softmax/softmax.perf``.

    Raises UsageError for a label that leaves ``out/``, whoever made it.
    """
    path = f"{label.package}/{label.name}" if label.package else label.name
    if not is_inside(path):
        what = f"'{label}' is not a valid label: its outputs would lie outside of out/"
        raise UsageError(Reason.BAD_LABEL, what)
    return out / path


def last_key(out: Path, label: Label) -> Digest | None:
    """The key of a view: that of the last build that settled the action."""
    try:
        first, *_ = read_plain(view_of(out, label) / _MARK).decode().splitlines()
        hash_, size = first.split("/")
        return Digest(hash_, int(size))
    except (OSError, ValueError):
        return None


def shown_at(out: Path, item: Settled) -> Path | None:
    """The path of an action's outputs; None if there are none, as after a skip."""
    return view_of(out, item.label) if item.result is not None and item.key is not None else None


def write_views(
    out: Path, settled: Iterable[Settled], link: Link, graph: ActionGraph | None = None
) -> None:
    """Show the outputs and logs of each action; views that are up to date stay.

    The view of a failed action is removed, since it would contradict this build. A cancelled action
    keeps the view of its own key. The key of an action that was not reached is unknown: it keeps
    its view unless one of its dependencies, by ``graph``, has a new result.

    ``settled`` has each action after its dependencies. ``link`` puts a blob of the store at a path.
    Writes all the views that it can, then raises the first ``OSError`` or StoreError.
    """
    moved: set[str] = set()
    failed: OSError | StoreError | None = None
    for item in settled:
        folder, is_new = view_of(out, item.label), True
        try:
            if item.result is not None and item.key is not None:
                is_new = _write_view(folder, item.result, item.key, link)
            elif is_new := not _may_stay(item, out, graph, moved):
                _clear(folder)
        except (OSError, StoreError) as error:
            failed = failed or error
        if is_new:
            moved.add(str(item.label))
    if failed:
        raise failed


def _may_stay(item: Settled, out: Path, graph: ActionGraph | None, moved: AbstractSet[str]) -> bool:
    """Whether an older view may stay although the action has no outputs; see above."""
    if item.outcome is not Outcome.CANCELLED:
        return False
    if item.key is not None:
        return item.key == last_key(out, item.label)
    action = graph.actions.get(str(item.label)) if graph else None
    return action is None or moved.isdisjoint(action.dependencies())


def _write_view(folder: Path, result: ActionResult, key: Digest, link: Link) -> bool:
    """Write a view; returns whether it changed."""
    files = [(file.path, file.digest) for file in result.files if is_inside(file.path)]
    logs = (("stdout.log", result.stdout), ("stderr.log", result.stderr))
    files += [(name, digest) for name, digest in logs if digest and digest.size]
    # The key is not enough: a repeated measurement has other samples under the same key.
    shown = "".join(f"{digest} {path}\n" for path, digest in files)
    mark, text = folder / _MARK, f"{key}\n{Digest.of(shown.encode())}\n"
    with contextlib.suppress(OSError):
        if read_plain(mark) == text.encode():
            return False
    _sweep(folder)
    _clear(folder)
    for path, digest in files:
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        _replace(digest, target, link)
    write_own(mark, text.encode())
    return True


def _replace(digest: Digest, target: Path, link: Link) -> None:
    """Link a blob to a path, where a killed build may have left a file."""
    import secrets

    half = target.with_name(f".{target.name}.{secrets.token_hex(6)}.tmp")
    try:
        link(digest, half)
        half.rename(target)
    finally:
        half.unlink(missing_ok=True)  # a link to the same file stays where it is


def _sweep(folder: Path) -> None:
    """Remove half-written files, and half-removed views, that a killed build left here."""
    from shutil import rmtree

    for left in (*folder.parent.glob(f".{folder.name}.*.tmp"), *folder.glob(".*.tmp")):
        if left.is_dir() and not left.is_symlink():
            rmtree(left, ignore_errors=True)
        else:
            left.unlink(missing_ok=True)


def _clear(folder: Path) -> None:
    """Remove an older view. Views of other targets may lie deeper and stay.

    It disappears at once, by a rename, so that no reader sees half of it; of two builds that remove
    it, one finds it gone.
    """
    if not (folder / _MARK).is_file():
        return
    import secrets
    from shutil import rmtree

    gone = folder.with_name(f".{folder.name}.{secrets.token_hex(6)}.tmp")
    with contextlib.suppress(FileNotFoundError):
        folder.rename(gone)
        rmtree(gone)
