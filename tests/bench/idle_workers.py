"""Workers of BuildGrid that do nothing: each action ends at once, with an empty result.

    python tests/bench/idle_workers.py COUNT CAPACITY PORT...

The workers take turns at the ports. Runs until it is killed. Messages are those of Google's Remote
Workers API, v1test2: field numbers are those of bots.proto and worker.proto.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import kabuild.remote

assert kabuild.remote

import grpc

from kabuild.base.canonical import (
    int_field,
    message_field,
    parse_fields,
    repeated_field,
    text_field,
)

_CREATE = "/google.devtools.remoteworkers.v1test2.Bots/CreateBotSession"
_UPDATE = "/google.devtools.remoteworkers.v1test2.Bots/UpdateBotSession"
_OK, _PENDING, _ACTIVE, _COMPLETED = 1, 1, 2, 4
_RESULT = "type.googleapis.com/build.bazel.remote.execution.v2.ActionResult"
_LONGEST = 20.0


def pair(number: int, key: str, value: str) -> bytes:
    return message_field(number, text_field(1, key) + text_field(2, value))


def worker(capacity: int) -> bytes:
    """A ``Worker`` that takes so many leases at a time."""
    device = text_field(1, "cpu") + pair(2, "OSFamily", "linux") + pair(2, "pool", "cpu")
    return message_field(1, device) + pair(3, "capacity", str(capacity))


def advanced(lease: bytes) -> bytes | None:
    """A lease in its next state; None for one that is over."""
    fields = dict(parse_fields(lease))
    state = fields.get(2, 0)
    if state not in {_PENDING, _ACTIVE}:
        return None
    done = state == _ACTIVE
    kept = b"".join(
        int_field(number, value) if isinstance(value, int) else message_field(number, value)
        for number, value in parse_fields(lease)
        if number not in {2, 3, 9}
    )
    answer = message_field(9, text_field(1, _RESULT)) if done else b""
    return kept + int_field(2, _COMPLETED if done else _ACTIVE) + message_field(3, b"") + answer


def work(channel: grpc.Channel, name: str, capacity: int) -> None:
    """One session, until the process ends."""
    create, update = (channel.unary_unary(method) for method in (_CREATE, _UPDATE))
    fixed = text_field(2, name) + int_field(3, _OK) + message_field(4, worker(capacity))
    answer = b""
    while not answer:
        with suppress(grpc.RpcError):  # the server may still be starting
            answer = create(message_field(2, fixed), timeout=_LONGEST)
    while True:
        said: dict[int, list[int | bytes]] = {}
        for number, value in parse_fields(answer):
            said.setdefault(number, []).append(value)
        (session,) = said[1]
        assert isinstance(session, bytes)
        leases = [kept for lease in said.get(5, ()) if (kept := advanced(_message(lease)))]
        version = b"".join(message_field(7, _message(value)) for value in said.get(7, ()))
        named = message_field(1, session)
        told = named + fixed + repeated_field(5, leases) + version
        try:
            answer = update(named + message_field(2, told), timeout=_LONGEST)
        except grpc.RpcError:
            time.sleep(0.1)


def _message(value: int | bytes) -> bytes:
    assert isinstance(value, bytes)
    return value


def main(arguments: Sequence[str]) -> None:
    count, capacity, *ports = map(int, arguments)
    channels = [grpc.insecure_channel(f"127.0.0.1:{port}") for port in ports]
    for number in range(count):
        name, channel = f"idle{number}", channels[number % len(channels)]
        threading.Thread(target=work, args=(channel, name, capacity), daemon=True).start()
    while True:
        time.sleep(3600)


if __name__ == "__main__":
    main(sys.argv[1:])
