"""The toolchains and platforms of this machine, as a node offers them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kabuild.base.errors import KabuildError
from kabuild.execution.host import cpu_platform
from kabuild.loading import Loader
from kabuild.model.device import Devices
from kabuild.model.digest import Digest
from kabuild.model.platform import CPU
from kabuild.provision import declarations, declarations_elsewhere, provision
from kabuild.store import Store
from kabuild.survey import survey
from kabuild.toolchain.declaration import names_of
from kabuild.toolchain.inventory import State, take_stock
from kabuild.worker.offer import Offer


@dataclass(frozen=True)
class Stock:
    """What this machine can offer, and the toolchains that it lacks, each with its state."""

    offer: Offer
    lacking: tuple[str, ...]


def stock_of(
    loader: Loader, store: Store, platform: str, devices: Sequence[int], jobs: int
) -> Stock:
    """Take stock for the platform ``platform``, besides ``cpu``; nothing is fetched.

    ``devices`` are numbers; empty means all. Raises as ``survey.survey``, and InfraError where the
    platform has no device that works.
    """
    platforms = loader.platforms
    own, found = survey(platforms, platforms.parse(platform), devices)
    offered = {CPU: cpu_platform(), own.name: own}
    toolchains, lacking = {}, []
    elsewhere = declarations_elsewhere(loader, _ignore)
    with provision(
        loader.workspace.root, store, fetch=False, locked=False, consulted=lambda _: None
    ) as resolver:
        known = (*declarations(loader), *elsewhere)
        names = names_of(known)
        for declaration in known:
            item = take_stock(declaration, resolver)
            if item.toolchain is not None and item.state is State.READY:
                toolchains[Digest.of(item.toolchain.fingerprint).hash] = item.toolchain
            else:
                lacking.append(f"{names[declaration.label]}: {item.state.value}")
    offer = Offer(offered, found if own.name != CPU else Devices(), toolchains, jobs)
    return Stock(offer, tuple(lacking))


def _ignore(_: str, __: KabuildError) -> None:
    """A package that cannot be loaded has no toolchains for this node."""
