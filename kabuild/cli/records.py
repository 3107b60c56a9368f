"""``kabuild records``: the best time of each config, who holds it, and what was broken."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from kabuild.base.errors import Reason, UsageError
from kabuild.base.listing import abridged, counted
from kabuild.base.printing import in_line
from kabuild.base.suggest import suggest_path
from kabuild.cli.bundle_flags import UnpackFlags
from kabuild.cli.completion import complete_labels
from kabuild.cli.evaluations import known_gates
from kabuild.cli.listing import listed
from kabuild.cli.options import argument, flag, takes
from kabuild.cli.presentation import JsonFlags
from kabuild.cli.types import InputPath, unwritable
from kabuild.loading import find_workspace, load_workspace
from kabuild.model.label import Pattern, selected
from kabuild.report.records import Of, Record, Time, versions
from kabuild.report.records_file import document, read_records, to_json, write_records
from kabuild.report.records_text import holder, times_text
from kabuild.report.site.listed import Listed, confirmed_records, published_records, times_too_vague
from kabuild.report.times import nanoseconds
from kabuild.store import Store

_MEASURE = (
    "to measure a time more exactly: kabuild test --nocache_test_results on an idle machine, "
    "then kabuild publish"
)
_DATE = re.compile(r"\d{4}-\d\d-\d\d")


def _date(_: click.Context, __: click.Parameter, value: str) -> str:
    """A day of the calendar; today's if none is given."""
    try:
        found = datetime.strptime(value, "%Y-%m-%d") if value else datetime.now(UTC)
    except ValueError:
        found = None
    if found is None or (value and not _DATE.fullmatch(value)):
        raise click.BadParameter(f"'{value}' is not a date such as 2026-01-31")
    return found.strftime("%Y-%m-%d")


class _Named(click.ParamType):  # type: ignore[type-arg]
    """A bundle, or the tasks whose records are shown: what begins with ``//`` or ``@``."""

    name = "bundle or pattern"
    _path = InputPath()

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Pattern | Path:
        """A pattern or a path."""
        if isinstance(value, str) and value.removeprefix("-").startswith(("//", "@")):
            return Pattern.parse(value)
        return self._path.convert(value, param, ctx)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Patterns if one was begun, else paths."""
        if incomplete.startswith(("//", "-//")):
            return [CompletionItem(one) for one in complete_labels(ctx, param, incomplete)]
        return self._path.shell_complete(ctx, param, incomplete)


@dataclass(frozen=True, kw_only=True)
class RecordsFlags(JsonFlags, UnpackFlags):
    """The options of ``kabuild records``."""

    named: tuple[Pattern | Path, ...] = argument(
        metavar="[BUNDLE|PATTERN]...", nargs=-1, type=_Named()
    )
    file: Path | None = flag(
        "--file",
        type=InputPath(dir_okay=False, plain=True),
        metavar="FILE",
        help="The records so far.  [default: records of [scoring] in WORKSPACE.toml]",
    )
    update: bool = flag("--update", is_flag=True, help="Write new records to the file.")
    date: str = flag(
        "--date",
        default="",
        callback=_date,
        metavar="DATE",
        help="The date of new records.  [default: today, in UTC]",
    )

    @property
    def bundles(self) -> list[Path]:
        """The bundles among what was named."""
        return [one for one in self.named if isinstance(one, Path)]

    @property
    def patterns(self) -> list[Pattern]:
        """The patterns among what was named."""
        return [one for one in self.named if isinstance(one, Pattern)]

    def selects(self, task: str) -> bool:
        """Whether the patterns cover a task; without any, all are."""
        return selected(task, self.patterns)


@click.command("records")
@takes(RecordsFlags)
def command(options: RecordsFlags) -> None:
    """Show the best time of each config of each task, and which bundles break records.

    \b
    kabuild records results/h200/*.kab               the best published times
    kabuild records //tasks/hip2hip/...              those of some tasks
    kabuild records ours.kab --file=records.json     what ours.kab would change
    kabuild records ours.kab --file=records.json --update

    Name the bundles in the order in which they were published. A time breaks a record if its
    95 % interval lies wholly below that of the record. It counts only if no usual gate was left
    out, and if the replay beside its bundle (BUNDLE.replay.json, from 'kabuild replay --json')
    measured it again; then the longer of the two times counts. --update writes only records that
    count.
    """
    file = options.file or records_file()
    if options.update and options.patterns:
        raise UsageError(
            Reason.BAD_FLAG,
            f"'{options.patterns[0]}' selects what is shown, and --update writes all records",
            hint="leave one of them out",
        )
    if file is None and (options.update or not options.bundles):
        raise UsageError(
            Reason.BAD_FLAG,
            "no file of records was named"
            if options.update
            else "no bundle or file of records was named",
            hint="name it: --file=FILE",
        )
    held = records_in(file)
    known = known_gates()
    with Store.open() as store:
        items = [listed(path, store, known, options.max_bytes) for path in options.bundles]
    changed = _Changed(held, items, options.date, options.selects)
    if options.patterns and not changed.tasks:
        raise _none_of(options.patterns, _Changed(held, items, options.date).tasks)
    click.echo(json.dumps(changed.to_json(), indent=1) if options.as_json else changed.text())
    if options.update and file is not None:
        _update(file, changed)


def _update(file: Path, changed: _Changed) -> None:
    """Write the records if any is new, and say so."""
    if changed.broken:
        try:
            write_records(file, changed.records)
        except OSError as error:
            raise unwritable("--file", file, error) from None
    said = counted(len(changed.broken), "new record") if changed.broken else "no new record"
    click.echo(in_line(f"{file}: {said}"), err=True)


def records_file() -> Path | None:
    """The records file in WORKSPACE.toml; None without a workspace or without one."""
    try:
        workspace = load_workspace(find_workspace(Path.cwd()))
    except UsageError:
        return None
    return workspace.root / workspace.records if workspace.records else None


def records_in(file: Path | None) -> Sequence[Record]:
    """The records so far; none if the file does not exist yet. Raises UsageError."""
    try:
        return read_records(file) if file else ()
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise UsageError(Reason.BAD_FLAG, f"{file}: {error.strerror}") from None


class _Changed:
    """The records after some bundles, of the tasks that ``selects`` accepts."""

    def __init__(
        self,
        held: Sequence[Record],
        items: Sequence[Listed],
        date: str,
        selects: Callable[[str], bool] = lambda _: True,
    ) -> None:
        self._held = {record.of: record for record in held}
        self._foreign = {item.digest: (item.source, item.foreign) for item in items if item.foreign}
        self._replays = {item.digest: item.replay for item in items if item.replay}
        found = confirmed_records(items, held, date)
        self.records = [record for record in found if selects(record.best.task)]
        published = published_records(items, held)
        self._published = [record for record in published if selects(record.best.task)]
        vague = times_too_vague(items, published)
        self.vague = [time for time in vague if selects(time.task)]

    @property
    def tasks(self) -> set[str]:
        """All tasks that have a time."""
        times = [record.best for record in (*self.records, *self._published)]
        return {time.task for time in (*times, *self.vague)}

    @property
    def broken(self) -> list[Record]:
        """The records that are new."""
        return [record for record in self.records if self._held.get(record.of) != record]

    @property
    def unreplayed(self) -> list[Time]:
        """Times that would be records if a replay had reproduced them."""
        counted = {record.of: record.best for record in self.records}
        return [
            record.best
            for record in self._published
            if _differ(record.best, counted.get(record.of))
        ]

    def to_json(self) -> Mapping[str, object]:
        """The content of the file, and what changed."""
        return {
            **document(self.records),
            "new": [to_json(record) for record in self.broken],
            "not_replayed": [to_json(Record(time)) for time in self.unreplayed],
            "too_vague": [to_json(Record(time)) for time in self.vague],
            "foreign_code": {bundle: [*code] for bundle, (_, code) in self._foreign.items()},
        }

    def text(self) -> str:
        """Tables for people."""
        new = {record.of for record in self.broken}
        times = [one.best for one in self.records]
        unconfirmed = sorted((*self.unreplayed, *self.vague), key=lambda time: time.of)
        known = versions([*times, *unconfirmed])
        parts = [
            *times_text("records", times, known, [_note(one, new) for one in self.records]),
            *times_text("not records yet", unconfirmed, known, map(self._beaten, unconfirmed)),
        ]
        if any(time.bundle not in self._replays for time in self.unreplayed):
            parts.append("to replay one: kabuild replay --json X.kab > X.kab.replay.json")
        if self.vague:
            parts.append(_MEASURE)
        parts += [
            in_line(
                f"{source}: its times were measured by code that this kabuild does not ship "
                f"({counted(len(code), 'file')}; 'kabuild verify' names them)"
            )
            for source, code in self._foreign.values()
        ]
        return "\n\n".join(parts) or "no records"

    def _beaten(self, time: Time) -> str:
        before = {record.of: record.best for record in self.records}.get(time.of)
        would = f"would break {holder(before)}" if before else "would be the first"
        return f"{would}; {self._obstacle(time)}"

    def _obstacle(self, time: Time) -> str:
        """What keeps a time from being a record."""
        if time.vague:
            return "its 95 % interval is too wide" if time.speedup.ends else "without an interval"
        replay = self._replays.get(time.bundle)
        if replay is None:
            return "not replayed"
        other = replay.unlike(time.task)
        return f"replayed, and not the same: {abridged(other)}" if other else "not wholly replayed"


def _none_of(patterns: Sequence[Pattern], tasks: Iterable[str]) -> UsageError:
    return UsageError(
        Reason.UNKNOWN_TARGET,
        f"no record of {' '.join(map(str, patterns))}",
        hint=suggest_path(str(patterns[0]).removeprefix("-"), tasks)
        or "'kabuild records' lists all",
    )


def broken_by(times: Sequence[Record], held: Sequence[Record]) -> Iterator[str]:
    """What to say of the records ``held`` that ``times`` break."""
    before: Mapping[Of, Record] = {record.of: record for record in held}
    for record in times:
        known = before.get(record.of)
        if known and _differ(record.best, known.best):
            yield in_line(
                f"{record.best.task} {record.best.config}: {nanoseconds(record.best.nanoseconds)} "
                f"breaks the record of {holder(known.best)}"
            )


def _differ(one: Time, other: Time | None) -> bool:
    return other is None or (one.bundle, one.nanoseconds) != (other.bundle, other.nanoseconds)


def _note(record: Record, new: Iterable[Of]) -> str:
    if record.of not in new:
        return ""
    return f"new; was {holder(record.broken[-1])}" if record.broken else "new"
