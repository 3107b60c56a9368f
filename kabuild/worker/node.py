"""Runs one staged action after another: checked, in a sandbox, signed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

from kabuild.base.clock import Clock, SystemClock
from kabuild.base.errors import DeviceError, InfraError, KabuildError, Reason
from kabuild.execution.outcome import conclude
from kabuild.execution.prepared import Prepared
from kabuild.execution.strategy import Execution, Strategy
from kabuild.execution.wire import (
    ENDED,
    FAULT,
    REMEMBERED,
    REPORT,
    RESULT,
    TREES,
    ForeignToolchainError,
    Note,
    input_root,
    read_note,
    rebuild,
    report_key,
)
from kabuild.model.action import OUTPUT_ROOT, Resources
from kabuild.model.digest import Digest
from kabuild.model.result import ActionResult, Outcome
from kabuild.remote.signing import Signer
from kabuild.store.action_cache import encode
from kabuild.store.result_closure import trees_named_by
from kabuild.store.store import Store
from kabuild.worker.intake import ForeignDirectoryError, Intake, read_staged_note, take_in
from kabuild.worker.offer import Offer
from kabuild.worker.turns import Turns

FAILED, STOPPING, FOREIGN, OTHER_ROOT, NO_TOOLCHAIN, OTHER_PLATFORM, BUSY = 36, *range(69, 75)
"""Exit codes of the program; see the package."""


INFRA, REFUSED = Outcome.INFRA.value, "refused"

_SHOWN = 16
"""Digits of a key in a line for people."""

_LONG_WAIT = 1.0
"""Seconds of waiting that such a line names."""


@dataclass(frozen=True)
class LeftFile:
    """A file for the engine: its path below the working directory, and its blob."""

    path: str
    digest: Digest
    executable: bool = False


@dataclass(frozen=True)
class Report:
    """What the program leaves behind, and how it exits. ``text`` is for people."""

    code: int
    text: str = ""
    files: tuple[LeftFile, ...] = ()


@dataclass(frozen=True)
class Ended:
    """How one action ended on this node.

    Attributes:
        code: the program's exit code.
        outcome: a verdict's name, such as ``PASS``; ``done`` or ``failed`` for other actions;
            ``cancelled``, ``refused`` if nothing ran, ``infra`` if the machine failed.
        kind: ``timed``, ``device`` or ``cpu``: what it measures on or uses; empty if nothing ran.
        waited: seconds that it waited for its turn.
        ran: seconds that it took then.
    """

    code: int
    outcome: str
    kind: str = ""
    waited: float = 0.0
    ran: float = 0.0


class Watcher(Protocol):
    """Hears what a node does; see ``Metrics``. Called from many threads."""

    def took_in(self, intake: Intake) -> None:
        """The inputs of an action were hashed."""
        ...

    def ended(self, ended: Ended) -> None:
        """An action ended."""
        ...


class _RefusedError(Exception):
    """The node refuses the action; ``report`` says why."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.report = Report(code, text)


class Node:
    """One node. Used from many threads.

    ``strategy`` runs what is checked; ``turns`` says when; ``signer`` signs how it ended. ``said``
    hears one line for each action, and ``watcher`` what was staged and how it ended; then ``tidy``
    is called, which keeps the store small.
    """

    def __init__(
        self,
        store: Store,
        offer: Offer,
        strategy: Strategy,
        turns: Turns,
        signer: Signer,
        *,
        said: Callable[[str], None] = lambda _: None,
        watcher: Watcher | None = None,
        tidy: Callable[[], None] = lambda: None,
        clock: Clock | None = None,
    ) -> None:
        self._store = store
        self._offer = offer
        self._strategy = strategy
        self._turns = turns
        self._signer = signer
        self._said = said
        self._watcher = watcher
        self._tidy = tidy
        self._clock = clock or SystemClock()

    def run(self, top: int, cancel: threading.Event) -> Report:
        """Run the wire action that is staged in the directory ``top``; no KabuildError leaves."""
        shown = "a directory"
        try:
            note = self._note(top)
            if note.is_survey:
                return self._surveyed(note)
            shown = f"action {note.key.hash[:_SHOWN]}"
            prepared = self._checked(note, top)
            report, ended = self._ran(prepared, cancel)
        except _RefusedError as refused:
            report = refused.report
            ended = Ended(report.code, INFRA if report.code == FAILED else REFUSED)
        except KabuildError as error:
            report = Report(FAILED, f"{error.reason.name}: {error}")
            cancelled = error.reason is Reason.INTERRUPTED
            ended = Ended(FAILED, Outcome.CANCELLED.value if cancelled else INFRA)
        if self._watcher:
            self._watcher.ended(ended)
        self._said(f"{shown}: {_told(ended)}{f': {report.text}' if report.text else ''}")
        self._tidy()
        return report

    def _note(self, top: int) -> Note:
        try:
            return read_note(read_staged_note(top))
        except (ForeignDirectoryError, ValueError) as error:
            raise _RefusedError(FOREIGN, f"this is not an action of kabuild: {error}") from None

    def _checked(self, note: Note, top: int) -> Prepared:
        """The action of a note, if the directory, the toolchains and the platform are its own."""
        try:
            taken = take_in(top, self._store.cas)
        except ForeignDirectoryError as error:
            raise _RefusedError(OTHER_ROOT, f"the input root was not staged: {error}") from None
        if self._watcher:
            self._watcher.took_in(taken)
        root = taken.root
        try:
            wanted = input_root(note)
            if root.digest != wanted:
                what = f"the staged input root is {root.digest}, expected {wanted}"
                raise _RefusedError(OTHER_ROOT, what)
            prepared = rebuild(note, root, self._offer.toolchains)
        except ForeignToolchainError as error:
            name, fingerprint = error.args
            what = f"this node lacks the toolchain '{name}' with fingerprint {fingerprint[:16]}"
            hint = "'kabuild fleet status' says what differs"
            raise _RefusedError(NO_TOOLCHAIN, f"{what}; {hint}") from None
        except ValueError as error:
            raise _RefusedError(FOREIGN, f"this is not an action of kabuild: {error}") from None
        if why := self._offer.refusal(prepared.action):
            raise _RefusedError(OTHER_PLATFORM, why)
        return replace(prepared, fresh=note.fresh)

    def _ran(self, prepared: Prepared, cancel: threading.Event) -> tuple[Report, Ended]:
        needs, lease = prepared.action.resources, ""
        came = began = self._clock.monotonic()
        try:
            with self._turns.take(needs, cancel) as lease:
                began = self._clock.monotonic()
                ended = self._strategy.run(replace(prepared, device=lease), cancel)
                over = self._clock.monotonic()
        except DeviceError as error:
            if error.reason is Reason.DEVICE_LOST:
                self._turns.withdraw(lease)
            raise _RefusedError(FAILED if error.spoiled else BUSY, str(error)) from None
        result = ended.result
        if not result.hermetic:
            raise InfraError(Reason.SANDBOX_UNAVAILABLE, "the action ran without a sandbox")
        outcome, remembered = self._outcome(prepared, ended)
        report = self._report(prepared.key, prepared.fresh, ended, remembered=remembered)
        return report, Ended(report.code, outcome, _kind(needs), began - came, over - began)

    def _outcome(self, prepared: Prepared, ended: Execution) -> tuple[str, bool]:
        """What it came to; and whether a server may answer with it, as a build's own store does."""
        try:
            settled = conclude(prepared, ended, self._store.cas)
        except InfraError:
            return INFRA, False
        verdict, outcome = settled.verdict, settled.outcome
        return verdict.verdict.value if verdict else outcome.value, outcome is Outcome.DONE

    def _surveyed(self, note: Note) -> Report:
        offer = ActionResult(0, stdout=self._store.cas.put(self._offer.to_json()))
        return self._report(note.key, note.fresh, Execution(offer), remembered=True)

    def _report(self, key: Digest, fresh: str, ended: Execution, *, remembered: bool) -> Report:
        cas, result = self._store.cas, ended.result
        entry = encode(result, cas, ended=self._clock.wall())
        signed = self._signer.sign(
            report_key(key, fresh, ended.fault, remembered=remembered), entry
        )
        trees = trees_named_by(entry)
        kept = {RESULT: cas.put(signed), FAULT: cas.put(ended.fault.encode())}
        kept |= {"stdout": result.stdout, "stderr": result.stderr}  # type: ignore[dict-item]
        kept |= {f"{TREES}/{tree.hash}": tree for tree in trees}
        files = [
            LeftFile(f"{OUTPUT_ROOT}/{file.path}", file.digest, file.executable)
            for file in result.files
        ]
        files += [
            LeftFile(f"{OUTPUT_ROOT}/{REPORT}/{name}", digest)
            for name, digest in kept.items()
            if digest is not None
        ]
        return Report(REMEMBERED if remembered else ENDED, files=tuple(files))


def _told(ended: Ended) -> str:
    """How an action ended, for the node's log."""
    spent = f" in {ended.ran:.1f} s" if ended.kind else ""
    waited = f" after {ended.waited:.1f} s of waiting" if ended.waited >= _LONG_WAIT else ""
    return f"{ended.outcome}{spent}{waited} (exit code {ended.code})"


def _kind(needs: Resources) -> str:
    if needs.timed:
        return "timed"
    return "device" if needs.lease else "cpu"
