"""Sources that are to trip up the gate, its time or its output: each has a verdict all the same."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from bounds import Bounds
from compiler import run_tool
from compilers import find_compiler
from cpu_dialect import CPU
from elf import Symbol
from faults import SourceFault
from kernel_library import link_imports
from lexer import lex
from sources import load

from tests.toolchains.hip.support import HIP, ZIG, Driver

RUN = 'extern "C" int run() { return 0; }\n'
LONG = "a" * 300
BOMB = [
    *("template <class A, class B> struct P {};", "using T0 = P<int, int>;"),
    *(f"using T{i} = P<T{i - 1}, T{i - 1}>;" for i in range(1, 20)),
    "int x = T19{};",
]
MANY = 10_000
"""Of names and of lines: their product is too much."""
FAILING = {
    "a header's name": (f'#include "{LONG}.h"\n{RUN}', "Filename too long"),
    "a question for a header": (f'#if __has_include("{LONG}.h")\n#endif\n{RUN}', "too long"),
    "words of the compiler": ("\n".join(BOMB), "no viable conversion"),
    "raw strings without end": ('R"x(\n' * 40_000, "unterminated raw string"),
    "a number in a symbol": (
        f'extern "C" int _Z{"9" * 5000}f(); extern "C" int run() {{ return _Z{"9" * 5000}f(); }}',
        "undefined symbol",
    ),
}


def _judged(folder: Path, text: str) -> dict[str, Any]:
    (folder / "k.hip").write_text(text)
    command = [sys.executable, str(HIP / "driver/compile_gate.py"), "cpu", f"--compiler=zig:{ZIG}"]
    done = subprocess.run(
        [*command, "--source=k.hip", "--entry=run"],
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(HIP.parents[1] / "rules/harness/tools")},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-1000:]
    assert len(done.stderr) < 1 << 17
    verdict: dict[str, Any] = json.loads((folder / "out/verdict.json").read_bytes())
    return verdict


@pytest.mark.parametrize(("text", "said"), FAILING.values(), ids=FAILING)
def test_a_source_that_is_to_break_the_gate_fails(tmp_path: Path, text: str, said: str) -> None:
    verdict = _judged(tmp_path, text)

    assert (verdict["verdict"], verdict["reason"]) == ("FAIL", "COMPILE_ERROR")
    assert said in verdict["summary"]


def test_of_many_undefined_names_the_first_are_told(tmp_path: Path) -> None:
    """Names that the source does not spell are looked for in all of it."""
    (tmp_path / "k.hip").write_text("int x;\n" * MANY)
    sources = load(tmp_path / "k.hip", [], CPU)
    symbols = [Symbol(f"_Z9unknown{i:02}v", defined=False, function=False) for i in range(MANY)]
    compiler = find_compiler(f"zig:{ZIG}")

    with pytest.raises(SourceFault) as fault:
        link_imports(symbols, sources, compiler, frozenset())

    said = str(fault.value)
    assert said.count("undefined symbol") == 50
    assert said.endswith("and 9950 more of them")


def test_an_undefined_name_is_told_where_it_is_first(driver: Driver, tmp_path: Path) -> None:
    source = tmp_path / "k.hip"
    source.write_text(
        'extern "C" int unknowns, unknown();\nextern "C" int run() { return unknown(); }\n'
    )

    assert f"{source}:1:26: error: undefined symbol 'unknown'" in driver.refuse(source)


def test_the_line_of_a_message_is_the_compiler_s(driver: Driver, tmp_path: Path) -> None:
    """A form feed ends no line."""
    source = tmp_path / "k.hip"
    source.write_text("int a;\f int b;\nint c = wrong;\n")

    assert "k.hip:2:9: error: use of undeclared identifier 'wrong'\n  int c = wrong;" in (
        driver.refuse(source)
    )


def test_a_line_too_long_to_be_shown_is_only_named(driver: Driver, tmp_path: Path) -> None:
    source = tmp_path / "k.hip"
    source.write_text(f"int a = {'wrong + ' * 1000}1;\n")

    said = driver.refuse(source)

    assert "k.hip:1:9: error: use of undeclared identifier 'wrong'" in said
    assert "wrong + wrong" not in said


def test_a_tool_s_words_are_read_from_both_ends(tmp_path: Path) -> None:
    said = run_tool(["sh", "-c", "echo first >&2; yes | head -c 9000000; echo last"], tmp_path)

    assert said.returncode == 0
    assert said.messages.startswith("first\ny\n")
    assert "\n... of 9000005 bytes some are left out\n" in said.messages
    assert said.messages.endswith("y\nlast\n")
    assert len(said.messages) < 5 << 20


def test_a_tool_without_end_to_its_words_is_ended(tmp_path: Path) -> None:
    bounds = Bounds(cpu_seconds=60, file_bytes=1 << 20)

    with pytest.raises(SourceFault, match="a file of more than 1 MiB"), bounds.around(tmp_path):
        run_tool(["sh", "-c", "exec yes"], tmp_path)


@pytest.mark.parametrize(
    "text",
    ['R"x(' * 10 + ')x"', 'R"(a)" u8R"x()")x"', 'R"\'(")\'"', 'FOOR"x(" 1R"x("', '// R"x(\nint x;'],
)
def test_raw_strings_that_end_are_read(text: str) -> None:
    assert lex(text, "k.hip")


@pytest.mark.parametrize("text", ['R"x(\n)y"', 'int a = 1; u8R"(', 'R"(" R"x(")'])
def test_one_that_does_not_end_is_refused(text: str) -> None:
    with pytest.raises(SourceFault, match="unterminated raw string"):
        lex(text, "k.hip")


@pytest.mark.skipif(shutil.which("g++") is None, reason="no g++ on this machine")
def test_a_source_may_not_ask_for_any_number_of_headers(tmp_path: Path) -> None:
    """Each is a run of a compiler of the machine."""
    source = tmp_path / "k.hip"
    source.write_text("".join(f'#if __has_include("{i}.h")\n#endif\n' for i in range(201)) + RUN)

    said = Driver("cxx:g++").refuse(source)

    assert "k.hip:1:1: error: it asks for 201 headers, at most 200" in said
