"""``kabuild records``: the best time of each config, who holds it, and what was broken."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import click

from kabuild.base.errors import Reason, UsageError
from kabuild.base.listing import abridged, counted
from kabuild.base.printing import in_line
from kabuild.cli.bundle_flags import UnpackFlags
from kabuild.cli.evaluations import known_gates
from kabuild.cli.listing import listed
from kabuild.cli.options import argument, flag, takes
from kabuild.cli.presentation import JsonFlags
from kabuild.cli.types import InputPath, unwritable
from kabuild.loading import find_workspace, load_workspace
from kabuild.report.records import Of, Record, Time, versions
from kabuild.report.records_file import document, read_records, to_json, write_records
from kabuild.report.site.listed import SHORT, Listed, confirmed_records, published_records
from kabuild.report.table import text_table
from kabuild.report.times import nanoseconds
from kabuild.store import Store

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


@dataclass(frozen=True, kw_only=True)
class RecordsFlags(JsonFlags, UnpackFlags):
    """The options of ``kabuild records``."""

    bundles: tuple[Path, ...] = argument(metavar="[BUNDLE]...", nargs=-1, type=InputPath())
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


@click.command("records")
@takes(RecordsFlags)
def command(options: RecordsFlags) -> None:
    """Show the best time of each config of each task, and which bundles break records.

    \b
    kabuild records results/h200/*.kab               the best published times
    kabuild records ours.kab --file=records.json     what ours.kab would change
    kabuild records ours.kab --file=records.json --update

    Name the bundles in the order in which they were published. A time breaks a record if its
    95 % interval lies wholly below that of the record. It counts only if no usual gate was left
    out, and if the replay beside its bundle (BUNDLE.replay.json, from 'kabuild replay --json')
    measured it again; then the longer of the two times counts. --update writes only records that
    count.
    """
    file = options.file or records_file()
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
    changed = _Changed(held, items, options.date)
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
    """The records after some bundles."""

    def __init__(self, held: Sequence[Record], items: Sequence[Listed], date: str) -> None:
        self._held = {record.of: record for record in held}
        self._foreign = {item.digest: (item.source, item.foreign) for item in items if item.foreign}
        self._replays = {item.digest: item.replay for item in items if item.replay}
        self.records = confirmed_records(items, held, date)
        self._published = published_records(items, held)

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
            "foreign_code": {bundle: [*code] for bundle, (_, code) in self._foreign.items()},
        }

    def text(self) -> str:
        """Tables for people."""
        new = {record.of for record in self.broken}
        known = versions([*(one.best for one in self.records), *self.unreplayed])
        parts = []
        if self.records:
            rows = (_row(one.best, known, _note(one, new)) for one in self.records)
            parts.append(_table("records", rows))
        if self.unreplayed:
            rows = (_row(time, known, self._beaten(time)) for time in self.unreplayed)
            parts.append(_table("no records yet", rows))
            if any(time.bundle not in self._replays for time in self.unreplayed):
                parts.append("to replay one: kabuild replay --json X.kab > X.kab.replay.json")
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
        would = f"would break {_holder(before)}" if before else "would be the first"
        return f"{would}; {self._obstacle(time)}"

    def _obstacle(self, time: Time) -> str:
        """Why a time is no record."""
        replay = self._replays.get(time.bundle)
        if replay is None:
            return "not replayed"
        other = replay.unlike(time.task)
        return f"replayed, and not the same: {abridged(other)}" if other else "not wholly replayed"


def broken_by(times: Sequence[Record], held: Sequence[Record]) -> Iterator[str]:
    """What to say of the records ``held`` that ``times`` break."""
    before: Mapping[Of, Record] = {record.of: record for record in held}
    for record in times:
        known = before.get(record.of)
        if known and _differ(record.best, known.best):
            yield in_line(
                f"{record.best.task} {record.best.config}: {nanoseconds(record.best.nanoseconds)} "
                f"breaks the record of {_holder(known.best)}"
            )


def _differ(one: Time, other: Time | None) -> bool:
    return other is None or (one.bundle, one.nanoseconds) != (other.bundle, other.nanoseconds)


def _note(record: Record, new: Iterable[Of]) -> str:
    if record.of not in new:
        return ""
    return f"new; was {_holder(record.broken[-1])}" if record.broken else "new"


def _holder(time: Time) -> str:
    return f"{nanoseconds(time.nanoseconds)} by {time.agent} ({time.bundle[:SHORT]})"


def _row(time: Time, known: Mapping[Of, str], note: str) -> tuple[str, ...]:
    shown = f"{nanoseconds(time.low)} to {nanoseconds(time.high)}"
    figures = (nanoseconds(time.nanoseconds), shown, str(time.speedup))
    who = (time.agent, time.bundle[:SHORT], time.date, note)
    task = f"{time.task} ({known[time.of]})" if known[time.of] else time.task
    return tuple(map(in_line, (task, time.config, time.machine[0], *figures, *who)))


def _table(title: str, rows: Iterable[tuple[str, ...]]) -> str:
    heads = ("task", "config", "on", "time", "95 % interval", "speedup", "agent", "bundle", "date")
    return f"{title}\n{text_table([(*heads, ''), *rows], right=(3, 5))}"
