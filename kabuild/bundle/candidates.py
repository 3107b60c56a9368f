"""The kernel that a task's gates judged: all of them the one whose source is shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kabuild.base.bounded_json import bounded_json
from kabuild.bundle.claims import Get, false_claim
from kabuild.bundle.manifest import Record
from kabuild.bundle.verdicts import VERDICTS, task_of
from kabuild.model.action import Action
from kabuild.model.digest import Digest
from kabuild.model.label import Label
from kabuild.store.merkle import Directory

CANDIDATE = "candidate"
"""The directory in which an action finds the kernel that it compiles, runs or reads."""

JUDGES = ("tools/", "hip/", "runner", "runtime/", "launch_filter", "platforms/", VERDICTS)
"""How paths of compilers, runners, their sources, judges and verdicts begin; a task's own files lie
elsewhere."""

_SOURCE = f"--source={CANDIDATE}/"


def check_candidates(
    records: Sequence[Record],
    roots: Mapping[Digest, Directory],
    actions: Mapping[Digest, Action],
    get: Get,
) -> None:
    """Raise BundleError if gates of one task judged different kernels.

    A page would show the source of one beside the times of the other. The kernel is what the task's
    first gate found in ``candidate/``, and what compilations made of that alone. ``roots`` are by
    their own digests, ``actions`` by keys.
    """
    own: dict[Label, set[Digest]] = {}
    for record in records:
        given = _candidate(roots[record.root])
        if record.task and record.gate and given and task_of(record) not in own:
            _check_alone(record, roots[record.root])
            own[task_of(record)] = given
    for record in records:  # each after those that made its inputs
        root = roots[record.root]
        if not record.task or not (given := _candidate(root)):
            continue
        known = own.get(task_of(record), given)
        if given <= known:
            again = record.replayable and not record.timed
            if again and _compiles_candidate(actions[record.key], root, get):
                known.update(file.digest for file in record.files)
        elif record.gate:
            first = next(iter(sorted(given - known, key=str)))
            what = f"it judged another kernel than the task's first gate ({first})"
            raise false_claim(record, what)


def _compiles_candidate(action: Action, root: Directory, get: Get) -> bool:
    """Whether judging code compiles the file of ``candidate/``, and has no other source.

    Whose code that is, its origin tells. A source could also be in the command, or in a file beside
    the candidate; what compilers find beside it is JSON, fingerprints of toolchains included.
    """
    program, *arguments = action.argv[1:] or [""]
    files = dict(root.walk())
    if program not in files or not program.startswith(JUDGES):
        return False
    found = [path for path in files if path.startswith(f"{CANDIDATE}/")]
    if [a.partition("=")[2] for a in arguments if a.startswith(_SOURCE)] != found:
        return False
    if any(leaves_inputs(argument) for argument in arguments):
        return False
    ours = (*JUDGES, f"{CANDIDATE}/")
    others = [node for path, node in files.items() if not path.startswith(ours)]
    return all(_is_json(get(node.digest)) for node in others)


def _check_alone(record: Record, root: Directory) -> None:
    """Raise BundleError if a task's first gate found more than the one kernel that is shown."""
    inside = root.directories.get(CANDIDATE)
    names = [name for name, _ in inside.walk()] if inside else []
    if len(names) > 1:
        shown = f"only {names[0][:60]!r} is shown"
        raise false_claim(record, f"it found {len(names)} files in {CANDIDATE}/: {shown}")


def _is_json(data: bytes) -> bool:
    try:
        bounded_json(data)
    except ValueError:
        return False
    return True


def leaves_inputs(argument: str) -> bool:
    """Whether an argument may name a file outside the inputs, or an input by a detour.

    Files of toolchains are pinned.
    """
    value = argument.partition("=")[2] if argument.startswith("-") else argument
    return value.startswith("/") or ".." in value.split("/")


def _candidate(root: Directory) -> set[Digest]:
    inside = root.directories.get(CANDIDATE)
    return {node.digest for _, node in inside.walk()} if inside else set()
