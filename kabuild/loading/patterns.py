"""Target patterns of the command line, expanded to labels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

from kabuild.base.errors import InfraError, KabuildError, LoadError, LoadErrors, Reason, UsageError
from kabuild.base.listing import counted
from kabuild.base.suggest import suggest
from kabuild.loading.loader import Loader
from kabuild.model.label import Label, Pattern, repository_of, show_package
from kabuild.model.target import Target

MANUAL = "manual"
_MOST_SHOWN = 5


@dataclass(frozen=True)
class TagFilter:
    """Selects targets by tags: ``smoke,-gpu`` means with smoke and without gpu."""

    wanted: frozenset[str] = frozenset()
    unwanted: frozenset[str] = frozenset()

    @classmethod
    def parse(cls, text: str) -> TagFilter:
        """Read a comma-separated list; a leading ``-`` excludes."""
        tags = [tag.strip() for tag in text.split(",") if tag.strip()]
        unwanted = frozenset(tag[1:] for tag in tags if tag.startswith("-"))
        return cls(frozenset(tag for tag in tags if not tag.startswith("-")), unwanted)

    def keeps(self, target: Target) -> bool:
        """Whether a target has no unwanted tag and, if any are wanted, one of those."""
        tags = set(target.tags)
        return not tags & self.unwanted and (not self.wanted or bool(tags & self.wanted))


def expand(
    loader: Loader,
    patterns: Sequence[str],
    *,
    package: str = "",
    tags: str = "",
    manual: bool = False,
) -> tuple[Label, ...]:
    """The labels that ``patterns`` select, sorted; sub-targets only if they are named.

    Patterns apply from left to right, relative to ``package``; a leading ``-`` subtracts. Wildcards
    cover the workspace only, and skip targets tagged ``manual`` unless ``manual`` says otherwise.
    ``tags`` filters all. The result may be empty.

    Raises UsageError for unknown targets and LoadErrors for broken packages.
    """
    filter_ = TagFilter.parse(tags)
    chosen: dict[Label, Target] = {}
    for text in patterns:
        pattern = Pattern.parse(_plain(text), package=package)
        if pattern.negative:
            _subtract(loader, pattern, chosen)
        elif pattern.label:
            label, target = _single(loader, pattern.label, text, package)
            chosen[label] = target
        else:
            found = _wildcard(loader, pattern)
            targets = [target for target in found if manual or MANUAL not in target.tags]
            chosen.update(_parts(pattern, targets) if pattern.part else _whole(targets))
    return tuple(sorted(label for label, target in chosen.items() if filter_.keeps(target)))


def _plain(text: str) -> str:
    """Without the trailing slash of a path that a shell completed."""
    return text[:-1] if text.endswith("/") and not text.endswith("//") else text


def _single(loader: Loader, label: Label, text: str, package: str) -> tuple[Label, Target]:
    """The target of a label. A bare name may be a target of the current package."""
    is_bare = ":" not in text and not text.startswith(("//", "@"))
    if is_bare and not loader.has_package(label.package):
        here = Label(package, _plain(text))
        if loader.has_package(package) and loader.package(package).find(here.name):
            label = here
    return label, loader.target(label)


def _whole(targets: Iterable[Target]) -> dict[Label, Target]:
    return {target.label: target for target in targets}


def _parts(pattern: Pattern, targets: Sequence[Target]) -> dict[Label, Target]:
    """The sub-targets of one name, of all targets that have it."""
    found = {t.label.sub(pattern.part): t for t in targets if pattern.part in t.subtargets}
    if targets and not found:
        known = sorted({part for target in targets for part in target.subtargets})
        there = f"known: {', '.join(known)}" if known else ""
        raise UsageError(
            Reason.BAD_PATTERN,
            f"no target of '{pattern}' has a part '{pattern.part}'",
            hint=suggest(pattern.part, known) or there,
        )
    return found


def _subtract(loader: Loader, pattern: Pattern, chosen: dict[Label, Target]) -> None:
    if pattern.label:
        taken = {pattern.label: loader.target(pattern.label)}
    elif pattern.part:
        taken = _parts(pattern, _wildcard(loader, pattern))
    else:
        taken = _whole(_wildcard(loader, pattern))
    for label, target in taken.items():
        if target.label != label and target.label in chosen:
            raise UsageError(
                Reason.BAD_PATTERN,
                f"'{pattern}' excludes a part of {target.label.short}",
                hint="choose gates with --gates",
            )
    gone = taken if pattern.part else [label for label in chosen if pattern.covers(label)]
    for label in gone:
        chosen.pop(label, None)


def _wildcard(loader: Loader, pattern: Pattern) -> list[Target]:
    """All targets of the packages that a wildcard covers. Reports all problems at once."""
    if not pattern.recursive:
        return list(loader.package(pattern.package).targets.values())
    names = list(_packages(loader, pattern))
    targets: list[Target] = []
    errors: list[LoadError] = []
    for name in names:
        try:
            targets.extend(loader.package(name).targets.values())
        except LoadError as error:
            errors.append(error)
    if errors:
        raise LoadErrors.combine(errors)
    return targets


def _packages(loader: Loader, pattern: Pattern) -> list[str]:
    external = repository_of(pattern.package)
    if external or (loader.workspace.root / pattern.package).is_dir():
        names = list(loader.packages_below(pattern.package))
        if names:
            return names
    raise _nothing_below(loader, pattern)


def _nothing_below(loader: Loader, pattern: Pattern) -> KabuildError:
    parents: set[str] = set()
    repository = repository_of(pattern.package)
    shown = show_package(pattern.package)
    for name in loader.packages_below(f"@{repository}" if repository else ""):
        parts = name.split("/")
        parents.update("/".join(parts[:end]) for end in range(1, len(parts) + 1))
    if not repository and (skipped := _unreadable(loader, pattern.package)):
        return InfraError(
            Reason.MISSING_FILE,
            f"no package below '{shown}' can be read",
            hint="\n".join(loader.left_out[name] for name in skipped),
        )
    if not parents and not repository:
        return UsageError(
            Reason.UNKNOWN_PACKAGE,
            f"the workspace {loader.workspace.root} has no tasks yet",
            hint="make one: kabuild new task hip2hip/my_kernel",
        )
    if repository and (absent := loader.external.left_out(pattern.package)):
        return UsageError(
            Reason.UNKNOWN_PACKAGE,
            f"no task below '{shown}' was imported: {counted(len(absent), 'task')} left out",
            hint=f"the reasons: kabuild import --list {pattern.text}",
        )
    hint = suggest(f"{shown}/...", [f"{show_package(parent)}/..." for parent in parents])
    return UsageError(Reason.UNKNOWN_PACKAGE, f"no package below '{shown}'", hint=hint)


def _unreadable(loader: Loader, package: str) -> list[str]:
    """The first few directories in, below or above ``package`` that could not be read."""
    inside = f"{package}/" if package else ""
    found = (
        name
        for name in sorted(loader.unreadable)
        if f"{name}/".startswith(inside) or inside.startswith(f"{name}/") or name == "."
    )
    return list(islice(found, _MOST_SHOWN))
