"""Running a bundle again, with this machine's toolchains."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from random import Random

from kabuild.base.errors import BundleError, Reason, ToolchainError, UsageError
from kabuild.base.suggest import suggest_path
from kabuild.bundle.compare import Comparison, Word
from kabuild.bundle.environment_diff import other_processor
from kabuild.bundle.manifest import Manifest, Record
from kabuild.bundle.replay import replay
from kabuild.bundle.restore import Restored, restore
from kabuild.bundle.verdicts import left_out
from kabuild.execution import LocalStrategy
from kabuild.execution.host import cpus, instructions
from kabuild.execution.isolation import require_sandbox
from kabuild.loading import Loader, builtin_root, find_workspace, load_workspace
from kabuild.loading.platform_index import PlatformIndex
from kabuild.model.action import Toolchain
from kabuild.model.device import Devices
from kabuild.model.event import EventSink, Warned
from kabuild.model.gate import Gate, Gates, Pick, choose, merged
from kabuild.model.label import Pattern, selected
from kabuild.model.platform import CPU, Platform
from kabuild.provision import declarations, intact, provision
from kabuild.published.origin import Origins, origins
from kabuild.published.unpack import unpack
from kabuild.sandbox import Spawner
from kabuild.scheduler import FileLeases, pools_of
from kabuild.store import Store
from kabuild.survey import pool_of, survey


@dataclass(frozen=True)
class Replayed:
    """The result of a replay.

    ``origins`` says whose code judged: verdicts of foreign code are reproduced, not confirmed.
    ``left_out`` has, by gate, the tasks without a verdict although nothing stopped the gate.
    ``not_rerun`` has the labels of actions that use a network or secrets, such as agents.
    ``drawn_from`` is how many actions could have been run, of which a sample is a part.
    """

    manifest: Manifest
    comparisons: tuple[Comparison, ...]
    origins: Origins
    left_out: Mapping[str, Sequence[str]]
    not_rerun: tuple[str, ...] = ()
    drawn_from: int = 0

    def count(self, word: Word) -> int:
        """How many actions had this result."""
        return sum(item.word is word for item in self.comparisons)

    @property
    def remedies(self) -> tuple[str, ...]:
        """How to make more of it comparable byte for byte, without duplicates."""
        return tuple(dict.fromkeys(line for item in self.comparisons for line in item.remedies))


def replay_file(
    path: Path,
    store: Store,
    sink: EventSink,
    *,
    cwd: Path,
    patterns: Sequence[Pattern] = (),
    gates: Sequence[str] = (),
    known: Gates,
    sample: int | None = None,
    jobs: int | None = None,
    limit: int,
    stop: threading.Event,
) -> Replayed:
    """Run the actions of a bundle again and compare.

    ``patterns`` restrict it to tasks; ``gates`` to what these words mean, as ``known`` gates or as
    ones of the bundle; ``sample`` to so many actions, drawn by the bundle's own digest. Raises
    BundleError for one that is damaged, UsageError for an unknown task or gate, SandboxError,
    ``OSError``.
    """
    require_sandbox("a bundle's code", waivable=False)
    manifest = unpack(path, store, limit=limit)
    tasks = _of_tasks(manifest, patterns)
    meant = gates and _meant(manifest, gates, known)
    whole = _chosen(tasks, meant, of="chosen tasks" if patterns else "bundle")
    chosen = _sample(manifest, whole, sample)
    platforms = PlatformIndex.around(cwd)
    here, devices = _here(manifest, platforms)
    ready, early = [], []
    with machine_toolchains(cwd, store) as find:
        for record in chosen:
            try:
                restored = restore(record, store.cas.get, find, here)
                ready.append(_with_processor(restored, manifest))
            except ToolchainError as error:
                hint = (error.hint,) if error.hint else ()
                early.append(Comparison(record, Word.NOT_COMPARABLE, error.message, hint))
    with Spawner() as spawner:
        strategy = LocalStrategy(
            store,
            spawner,
            warn=lambda text: sink.emit(Warned(text)),
            devices=pool_of(platforms, devices),
            intact=intact(store),
        )
        done = replay(
            ready,
            strategy,
            store.cas,
            sink,
            FileLeases(store.leases),
            jobs=jobs or cpus(),
            stop=stop,
            pools=pools_of(devices),
        )
    by_key = {(item.record.label, item.record.key): item for item in (*done, *early)}
    ordered = tuple(by_key[record.label, record.key] for record in chosen)
    return Replayed(
        manifest,
        ordered,
        origins(manifest.records, store.cas.get),
        left_out(manifest, store.cas.get, known),
        tuple(record.label for record in manifest.records if not record.replayable),
        drawn_from=len(whole),
    )


@contextmanager
def machine_toolchains(cwd: Path, store: Store) -> Iterator[Callable[[str], Toolchain]]:
    """Finds toolchains by name: those of the workspace around ``cwd``, else kabuild's own.

    Fetches pinned ones. Raises ToolchainError for an unknown name.
    """
    root = builtin_root()
    with suppress(UsageError):
        root = find_workspace(cwd)
    known = {item.label.name: item for item in declarations(Loader(load_workspace(root)))}
    found: dict[str, Toolchain] = {}
    with provision(root, store, fetch=True, locked=False, consulted=lambda _: None) as resolve:

        def find(name: str) -> Toolchain:
            if name not in known:
                raise ToolchainError(
                    Reason.NO_TOOLCHAIN, f"no toolchain '{name}' in //toolchains/... here"
                )
            if name not in found:
                found[name] = resolve(known[name], name=name)
            return found[name]

        yield find


def _with_processor(restored: Restored, manifest: Manifest) -> Restored:
    """The environment difference of an untimed action:

    other processors may give other last digits.
    """
    if restored.obstacle or restored.record.timed:  # keys of measurements include the processor
        return restored
    return replace(restored, obstacle=other_processor(manifest.instructions, instructions()))


def _meant(manifest: Manifest, words: Sequence[str], known: Gates) -> tuple[str, ...]:
    """The gates in ``--gates``, which may be gates of the bundle that no rule here declares."""
    more = tuple(Gate(name) for name in dict.fromkeys(r.gate for r in manifest.records if r.gate))
    return choose(words, Pick.USUAL, merged([known.all, more]))


def _of_tasks(manifest: Manifest, patterns: Sequence[Pattern]) -> list[Record]:
    """The records of some tasks. What these were made from is in the bundle."""
    found = [record for record in manifest.records if selected(record.task, patterns)]
    tasks = {record.task for record in manifest.records}
    for pattern in patterns:
        if not pattern.negative and not any(selected(task, [pattern]) for task in tasks):
            raise _no_task(pattern, tasks)
    if patterns and not found:
        raise _no_task(patterns[-1], tasks)
    return found


def _no_task(pattern: Pattern, tasks: Iterable[str]) -> UsageError:
    return UsageError(
        Reason.UNKNOWN_TARGET,
        f"no task of the bundle matches {pattern}",
        hint=suggest_path(str(pattern), tasks) or "'kabuild report BUNDLE' lists its tasks",
    )


def _chosen(records: Sequence[Record], gates: Sequence[str], *, of: str) -> list[Record]:
    chosen = [
        record for record in records if record.replayable and (not gates or record.gate in gates)
    ]
    if not chosen:
        raise BundleError(
            Reason.NOT_PUBLISHABLE,
            f"no action of the {of} can be rerun"
            + (f" for gates {', '.join(gates)}" if gates else ""),
        )
    return chosen


def _sample(manifest: Manifest, chosen: list[Record], sample: int | None) -> list[Record]:
    if sample is None or sample >= len(chosen):
        return chosen
    drawn = Random(sha256(manifest.to_json()).digest()).sample(range(len(chosen)), sample)  # noqa: S311
    return [chosen[index] for index in sorted(drawn)]


def _here(manifest: Manifest, platforms: PlatformIndex) -> tuple[Platform, Devices]:
    """This machine's version of the bundle's platform, perhaps without devices."""
    name, arch = (manifest.platform.get(key, "") for key in ("name", "arch"))
    asked = f"{name}:{arch}" if name != CPU and arch else name or CPU
    return survey(platforms, platforms.parse(asked))
