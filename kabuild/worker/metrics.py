"""What a node does, in numbers for Prometheus: ``kabuild worker serve --metrics=HOST:PORT``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from wsgiref.simple_server import WSGIServer

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    Info,
    disable_created_metrics,
    start_http_server,
)
from prometheus_client.process_collector import ProcessCollector

from kabuild.base.errors import InfraError, Reason
from kabuild.base.version import __version__
from kabuild.model.platform import CPU
from kabuild.worker.intake import Intake
from kabuild.worker.node import Ended
from kabuild.worker.offer import Offer
from kabuild.worker.turns import Load

_SECONDS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 1000.0)
"""Upper bounds of a histogram: from a trivial tool to a long measurement."""

# A series of its start beside each counter, without a unit in its name: nothing asks for it.
disable_created_metrics()  # type: ignore[no-untyped-call]


class Metrics:
    """The numbers of one node, a Watcher of it. ``load`` says what waits and runs."""

    def __init__(self, offer: Offer, load: Callable[[], Load]) -> None:
        self.registry = CollectorRegistry()
        self._actions = Counter(
            "kabuild_node_actions",
            "Actions that ended, by verdict or other outcome, and by the program's exit code.",
            ("outcome", "code"),
            registry=self.registry,
        )
        self._ran = self._histogram("run", "Seconds from an action's turn to its end.")
        self._waited = self._histogram("wait", "Seconds that an action waited for its turn.")
        self._inputs = Counter(
            "kabuild_node_input_files",
            "Files of inputs, by whether the node's store had them.",
            ("cache",),
            registry=self.registry,
        )
        for cache in ("hit", "miss"):
            self._inputs.labels(cache)
        platforms = " ".join(map(str, offer.platforms.values()))
        Info("kabuild_node", "What this node is.", registry=self.registry).info(
            {"version": __version__, "platforms": platforms}
        )
        self._gauge("cpu_slots", "CPU slots that the node offers.").set(offer.jobs)
        queued = self._gauge("queued_actions", "Actions that wait for slots or a device.")
        queued.set_function(lambda: load().waiting)
        running = self._gauge("running_actions", "Actions that run.")
        running.set_function(lambda: load().running)
        leases = self._gauge("device_leased", "1 if an action has the device.", "device")
        lost = self._gauge("device_lost", "1 if the device failed and is used no more.", "device")
        for device in [device.lease for device in offer.devices.found]:
            leases.labels(device).set_function(partial(_is_held, load, device))
            lost.labels(device).set_function(partial(_is_lost, load, device))
        leases.labels(CPU).set_function(partial(_is_held, load, CPU))
        ProcessCollector(namespace="kabuild_node", registry=self.registry)

    def took_in(self, intake: Intake) -> None:
        """Count the inputs of an action."""
        self._inputs.labels("hit").inc(intake.found)
        self._inputs.labels("miss").inc(intake.new)

    def ended(self, ended: Ended) -> None:
        """Count an action, and its seconds if it ran."""
        self._actions.labels(ended.outcome, str(ended.code)).inc()
        if ended.kind:
            self._ran.labels(ended.kind).observe(ended.ran)
            self._waited.labels(ended.kind).observe(ended.waited)

    def _gauge(self, name: str, text: str, *labels: str) -> Gauge:
        return Gauge(f"kabuild_node_{name}", text, labels, registry=self.registry)

    def _histogram(self, name: str, text: str) -> Histogram:
        return Histogram(
            f"kabuild_node_{name}_seconds",
            text,
            ("kind",),
            registry=self.registry,
            buckets=_SECONDS,
        )


def _is_held(load: Callable[[], Load], device: str) -> float:
    return float(device in load().held)


def _is_lost(load: Callable[[], Load], device: str) -> float:
    return float(device not in load().devices)


@contextmanager
def serving(metrics: Metrics, host: str, port: int) -> Iterator[str]:
    """Serve ``metrics`` over HTTP during the body, which gets the URL; port 0 is any free one.

    Raises InfraError where nothing can listen there.
    """
    server: WSGIServer
    try:
        server, thread = start_http_server(port, host, metrics.registry)
    except OSError as error:
        what = f"--metrics: nothing can listen at {host}:{port}: {error.strerror or error}"
        raise InfraError(Reason.NO_RESOURCES, what) from None
    try:
        shown = f"[{host}]" if ":" in host else host
        yield f"http://{shown}:{server.server_port}/metrics"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
