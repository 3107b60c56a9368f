"""Turns a worker into a program, or runs a script in its present interpreter.

A script that runs in place sees what it would see in its own interpreter: ``__main__``,
``sys.argv``, ``sys.path[0]``, the environment, tracebacks, exit codes. Self-contained, because
it runs inside a zygote.
"""

from __future__ import annotations

import atexit
import builtins
import importlib
import os
import signal
import sys
import types
from collections.abc import Mapping, Sequence
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import NoReturn

from .compiled import CompiledFiles

_CANNOT_START = 127
_IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)


def execute(argv: Sequence[str], env: Mapping[str, str]) -> NoReturn:
    """Replace this process by the program ``argv`` with exactly ``env``.

    A program that cannot be started is reported on stderr, with exit code 127.
    """
    for number in _IGNORED_BY_PYTHON:
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvpe(argv[0], list(argv), env)  # noqa: S606 - this is what a worker is for
    except OSError as error:
        os.write(2, f"cannot start {argv[0]}: {error.strerror}\n".encode())
    os._exit(_CANNOT_START)


def run_script(
    argv: Sequence[str], env: Mapping[str, str], compiled: CompiledFiles | None = None
) -> int:
    """Run the script ``argv[1]`` here, as ``argv[0]`` would; its exit code.

    It and its imports are taken from ``compiled`` where they are the same.
    """
    compiled = compiled or CompiledFiles()
    _look_fresh(argv, env)
    compiled.import_from()
    path = os.path.abspath(argv[1])  # noqa: PTH100 - as the interpreter does: links stay
    main = _main_module(path)
    code = 0
    try:
        source = Path(path).read_bytes()
        program = compiled.code(source, path) or compile(source, path, "exec", dont_inherit=True)
        exec(program, main.__dict__)  # noqa: S102
    except SystemExit as leaving:
        code = _exit_code(leaving)
    except BaseException as error:  # noqa: BLE001 - reported as an interpreter reports it
        if error.__traceback__ is not None:
            error.__traceback__ = error.__traceback__.tb_next  # without this function
        sys.excepthook(type(error), error, error.__traceback__)
        code = 1
    if "threading" in sys.modules:  # importing it here would slow every fork down
        sys.modules["threading"]._shutdown()  # noqa: SLF001 - as at interpreter exit
    atexit._run_exitfuncs()  # noqa: SLF001 - there is no public name, and no way to return
    return code


def _look_fresh(argv: Sequence[str], env: Mapping[str, str]) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(env)
    sys.argv = list(argv[1:])
    sys.orig_argv = list(argv)
    sys.path.insert(0, os.path.dirname(os.path.realpath(argv[1])))  # noqa: PTH120
    for path, finder in list(sys.path_importer_cache.items()):
        if finder is None:  # a directory that the zygote could not see
            del sys.path_importer_cache[path]
    importlib.invalidate_caches()


def _main_module(path: str) -> types.ModuleType:
    main = types.ModuleType("__main__")
    main.__file__ = path
    main.__loader__ = SourceFileLoader("__main__", path)
    main.__dict__.update(__builtins__=builtins, __cached__=None, __annotations__={})
    sys.modules["__main__"] = main
    return main


def _exit_code(leaving: SystemExit) -> int:
    if leaving.code is None:
        return 0
    if isinstance(leaving.code, int):
        return leaving.code & 0xFF
    sys.stderr.write(f"{leaving.code}\n")
    return 1
