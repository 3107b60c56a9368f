"""The spawner's side of one zygote: starts it, sends requests, ends it."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kabuild.sandbox import protocol
from kabuild.sandbox.zygote import BOOTSTRAP

_STDERR_BYTES = 2000
_END_SECONDS = 5.0
_BUSY_SECONDS = 0.2


class ZygoteLost(Exception):  # noqa: N818 - an event that the spawner answers with a restart
    """A zygote died. The text holds the end of its stderr."""


class PreloadRefused(Exception):  # noqa: N818 - an event that the spawner answers by running cold
    """A module to preload cannot be imported by this interpreter."""


class ZygoteProcess:
    """One zygote; thread-safe.

    ``env`` is its whole environment, besides a fixed hash seed and no user site directory:
    libraries read it while they are imported, and scripts that run in place inherit the effect.
    """

    def __init__(self, interpreter: str, preload: Sequence[str], env: Mapping[str, str]) -> None:
        self.users = 0
        self._interpreter = interpreter
        self._preload = tuple(preload)
        self._env = {"PYTHONHASHSEED": "0", "PYTHONNOUSERSITE": "1", **env}
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._channel: socket.socket | None = None
        # No temporary file: Python tries out the directory with one, which a kill leaves behind.
        self._stderr = os.fdopen(os.memfd_create("kabuild-zygote"), "w+b")
        self._refusal: str | None = None

    def start(self) -> None:
        """Start it unless it runs, and wait until it is ready.

        Raises ``PreloadRefused`` or ``ZygoteLost``.
        """
        with self._lock:
            if self._refusal is not None:
                raise PreloadRefused(self._refusal)
            if self._process is not None:
                return
            self._launch()
            answer = self._first_message()
            if "error" in answer:
                self._refusal = str(answer["error"])
                raise PreloadRefused(self._refusal)

    def send(self, message: dict[str, Any], fds: Sequence[int] = ()) -> None:
        """Send one request. Raises ``ZygoteLost``."""
        with self._lock:
            try:
                assert self._channel is not None, "send() comes after start()"
                protocol.send(self._channel, message, fds)
            except OSError as error:
                raise self._lost() from error

    def check_alive(self) -> None:
        """Raise ``ZygoteLost`` when it has died, or is about to."""
        with self._lock:
            if self._process is not None and self._process.poll() is not None:
                raise self._lost()

    def close(self) -> None:
        """End the zygote and every sandbox that it started; at once if it is still starting."""
        starting = not self._lock.acquire(timeout=_BUSY_SECONDS)
        if starting and self._process is not None:
            self._process.kill()
        if not starting:
            self._lock.release()
        with self._lock:
            if self._channel is not None:
                self._channel.close()
            if self._process is not None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._process.wait(_END_SECONDS)
                self._process.kill()
                self._process.wait()
            self._stderr.close()

    def _launch(self) -> None:
        ours, theirs = socket.socketpair()
        plain = () if self._preload else ("-I", "-S")  # a small process forks faster
        with theirs:
            self._process = subprocess.Popen(
                [
                    *(self._interpreter, *plain, "-c", BOOTSTRAP),
                    *(str(Path(__file__).parent), str(theirs.fileno()), *self._preload),
                ],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._stderr,
                env=self._env,
                cwd="/",
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        self._channel = ours

    def _first_message(self) -> dict[str, Any]:
        assert self._channel is not None
        try:
            received = protocol.receive(self._channel)
        except OSError as error:
            raise self._lost() from error
        if received is None:
            raise self._lost()
        return received[0]

    def _lost(self) -> ZygoteLost:
        text = ""
        if not self._stderr.closed:
            self._stderr.seek(0)
            text = self._stderr.read()[-_STDERR_BYTES:].decode(errors="replace").strip()
        name = f"{self._interpreter} with {', '.join(self._preload) or 'nothing'} preloaded"
        return ZygoteLost(f"the zygote process ({name}) died{': ' + text if text else ''}")
