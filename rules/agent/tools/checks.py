"""The server of ``kabuild-check``: answers an agent's checks, and keeps a record of each.

One JSON object on one line each way, over a Unix socket that the agent sees::

    {"source": "...", "gates": ["compile", "smoke"], "only": "", "budget": 0.0, "against": ""}
    {"verdicts": [...]}  or  {"error": "...", "machine": true}

``{"sources": ["...", ...]}`` is only compiled, several at a time: a verdict for each. With
``"seconds"`` their times are modelled within so many, instead: ``{"modelled_ns": [1.0, null]}``, or
``{"modelled_ns": [null, null], "why": "..."}`` if nothing models times here.

The agent is hostile: a request is bounded in size and time, and malformed ones are refused.
Requests are served in order, so that timings do not disturb each other.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import socket
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

from bench import MOST_COMPILED, SMOKE, Bench
from hand_in import MOST_BYTES, RefusedError, check_text
from jobs import CheckError, Verdict

ANALYZE, RANK = "analyze", "rank"
GATES = ("compile", SMOKE, "correctness", "perf", ANALYZE)
_REQUEST_BYTES = 4 * MOST_BYTES
_REQUEST_SECONDS = 30.0
_READ_BYTES = 1 << 16
_RECORD_BYTES = 16 << 20
_ERROR_CHARACTERS = 500
_LEAST_BUDGET = 0.05
_MOST_SECONDS = 86_400


def listen(path: Path) -> socket.socket:
    """A socket at ``path``, for ``serve``."""
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listening.bind(str(path))
    path.chmod(0o666)
    listening.listen(16)
    return listening


def serve(listening: socket.socket, bench: Bench, record: Path) -> NoReturn:
    """Serve for ever; each request adds a line to ``record``, until that is full."""
    started = time.monotonic()
    with record.open("w", buffering=1, errors="backslashreplace") as log:
        while True:
            connection, _ = listening.accept()
            with connection, contextlib.suppress(OSError):
                connection.settimeout(_REQUEST_SECONDS)
                began = time.monotonic()
                request, answer = _handle(connection, bench)
                seconds = time.monotonic() - began
                entry = _entry(request, answer, began - started, seconds)
                if log.tell() < _RECORD_BYTES:
                    log.write(json.dumps(entry, ensure_ascii=False) + "\n")
                connection.sendall(json.dumps(answer).encode() + b"\n")


def _handle(connection: socket.socket, bench: Bench) -> tuple[Mapping[str, Any], dict[str, Any]]:
    request: Mapping[str, Any] = {}
    try:
        request = _read(connection)
        return request, _answer(request, bench)
    except RefusedError as refusal:
        return request, {"error": f"the kernel is refused: {refusal}", "machine": False}
    except CheckError as error:
        return request, {"error": str(error), "machine": True}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        return {}, {"error": f"this cannot be checked: {error}", "machine": False}
    except OSError as error:
        if not request:
            raise  # the agent has hung up
        return request, {"error": f"the check itself failed: {error.strerror}", "machine": True}


def _answer(request: Mapping[str, Any], bench: Bench) -> dict[str, Any]:
    if "sources" not in request:
        source = check_text(request["source"].encode())
        return {"verdicts": list(_check(bench, source, request))}
    sources = [check_text(source.encode()) for source in request["sources"]]
    if "seconds" not in request:
        return {"verdicts": bench.compile_all(sources)}
    seconds = _seconds(request, "seconds")
    try:
        return {"modelled_ns": bench.rank(sources, seconds)}
    except ValueError as error:
        return {"modelled_ns": [None] * len(sources), "why": str(error)}


def _seconds(request: Mapping[str, Any], name: str) -> float:
    """A number of seconds in a request; 0 if it has none. Raises ValueError."""
    value = request.get(name, 0.0)
    known = isinstance(value, int | float) and not isinstance(value, bool)
    if not known or not 0 <= value <= _MOST_SECONDS:
        raise ValueError(f"'{name}' is no number from 0 to {_MOST_SECONDS}")
    return float(value)


def _read(connection: socket.socket) -> Mapping[str, Any]:
    data = bytearray()
    deadline = time.monotonic() + _REQUEST_SECONDS
    while not data.endswith(b"\n"):
        part = connection.recv(_READ_BYTES)
        data += part
        if not part or len(data) > _REQUEST_BYTES or time.monotonic() > deadline:
            raise ValueError("it is cut short, too long or too slow")
    value = json.loads(data)
    if not isinstance(value, dict):
        raise ValueError("it is not a JSON object")
    if "sources" in value:
        if not isinstance(value["sources"], list) or len(value["sources"]) > MOST_COMPILED:
            raise ValueError(f"at most {MOST_COMPILED} kernels can be asked about at once")
    elif unknown := [gate for gate in value["gates"] if gate not in GATES]:
        raise ValueError(f"unknown gate '{unknown[0]}'; gates: {', '.join(GATES)}")
    return value


def _check(bench: Bench, source: bytes, request: Mapping[str, Any]) -> Iterator[Verdict]:
    """The verdicts of the requested gates, always after compiling."""
    asked = [gate for gate in GATES if gate in request["gates"]]
    against = _compile_other(bench, str(request.get("against", "")))
    verdict, artifact = bench.compile(source)
    passed = verdict["verdict"] == "PASS"
    if "compile" in asked or not passed:
        yield verdict
    for gate in asked:
        if gate == "compile":
            continue
        if not passed:
            yield bench.skipped(gate, f"{verdict['gate']}: {verdict['verdict']}")
            continue
        only, changes = str(request.get("only", "")), {}
        if gate == "perf" and (budget := _seconds(request, "budget")):
            changes = {"budget_seconds": max(_LEAST_BUDGET, budget)}
        if gate == ANALYZE:
            verdict = bench.analyze(source, only)
        else:
            other = against if gate == "perf" else None
            verdict = bench.judge(gate, artifact, only, changes, other)
        passed = verdict["verdict"] == "PASS"
        yield verdict


def _compile_other(bench: Bench, text: str) -> Path | None:
    """The compiled kernel that replaces the baseline; None without one. Raises RefusedError."""
    if not text:
        return None
    verdict, artifact = bench.compile(check_text(text.encode()))
    if verdict["verdict"] != "PASS":
        raise RefusedError(f"the kernel to compare with does not compile: {verdict['summary']}")
    return artifact


def _entry(
    request: Mapping[str, Any], answer: Mapping[str, Any], at: float, seconds: float
) -> dict[str, Any]:
    """The record of one check; ``at`` is in seconds since the session began."""
    source, several = request.get("source"), request.get("sources")
    digest = _digest(source) if isinstance(source, str) and source else ""
    verdicts = [
        {
            "gate": verdict["gate"],
            "verdict": verdict["verdict"],
            "reason": verdict.get("reason", ""),
            "summary": verdict.get("summary", ""),
            **_speedup(verdict),
        }
        for verdict in answer.get("verdicts", ())
    ]
    return {
        "at": round(at, 3),
        "seconds": round(seconds, 3),
        "kernel": digest,
        **({} if several is None else {"kernels": [_digest(text) for text in several]}),
        "gates": _gates(request),
        "verdicts": verdicts,
        **{name: answer[name] for name in ("modelled_ns", "why") if name in answer},
        "error": str(answer.get("error", ""))[:_ERROR_CHARACTERS],
    }


def _gates(request: Mapping[str, Any]) -> list[str]:
    if "sources" in request:
        return [RANK if "seconds" in request else "compile"]
    return list(request.get("gates", ()))


def _speedup(verdict: Mapping[str, Any]) -> dict[str, Any]:
    """The speedup of a passed perf gate, with its interval."""
    if "mean_speedup" not in verdict:
        return {}
    ends = {key: verdict[key] for key in ("speedup_low", "speedup_high") if key in verdict}
    return {"speedup": verdict["mean_speedup"], **ends}


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()


def start(listening: socket.socket, bench: Bench, record: Path) -> int:
    """Fork the server; its pid."""
    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()
            bench.warm_up()  # while the agent is still reading
            serve(listening, bench, record)
        finally:
            os._exit(1)
    return pid
