"""A server at a distance: every byte to it and from it arrives later than it was sent."""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_CHUNK = 1 << 16


async def _carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, delay: float) -> None:
    """Copy a stream; what comes meanwhile is on its way, too, as on a long line."""
    loop = asyncio.get_running_loop()
    line: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

    async def deliver() -> None:
        while True:
            due, data = await line.get()
            await asyncio.sleep(max(0.0, due - loop.time()))
            if not data:
                writer.close()
                return
            writer.write(data)
            await writer.drain()

    end = asyncio.create_task(deliver())
    with contextlib.suppress(OSError):
        while data := await reader.read(_CHUNK):
            line.put_nowait((loop.time() + delay, data))
    line.put_nowait((loop.time() + delay, b""))
    with contextlib.suppress(OSError):
        await end


async def _serve(port: int, delay: float, ready: Any) -> None:
    async def connected(near: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        far, forth = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(_carry(near, forth, delay), _carry(far, back, delay))

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    ready.send(server.sockets[0].getsockname()[1])
    await server.serve_forever()


def _main(port: int, delay: float, ready: Any) -> None:
    asyncio.run(_serve(port, delay, ready))


@contextmanager
def at_a_distance(port: int, round_trip: float) -> Iterator[int]:
    """A port of this machine that leads to ``port``, with so many seconds there and back."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_main, args=(port, round_trip / 2, theirs), daemon=True)
    process.start()
    try:
        yield int(ours.recv())
    finally:
        process.kill()
        process.join()
