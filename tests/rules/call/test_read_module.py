"""The compile gate of tasks with a call: where a module ends, and what breaks its reader."""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls

import ast
import importlib.util
import json
from pathlib import Path

import kernel_source
import pytest
from terms import reading

ROOT = Path(__file__).parents[3]
END = "########"
MODEL = "class ModelNew:\n    pass\n"


@pytest.fixture(scope="module")
def gate():
    path = ROOT / "rules/call/tools/read_module.py"
    spec = importlib.util.spec_from_file_location("read_module", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def run(gate, tmp_path):
    def judge(text: str, *more: str):
        (tmp_path / "model.py").write_bytes(text.encode())
        out = tmp_path / "out"
        out.mkdir(exist_ok=True)
        arguments = [f"--source={tmp_path / 'model.py'}", "--name=ModelNew", f"--out={out}"]
        assert gate.main([*arguments, *more]) == 0
        verdict = json.loads((out / "verdict.json").read_bytes())
        kernel = out / "kernel.py"
        return verdict, kernel.read_text() if kernel.exists() else None

    return judge


@pytest.mark.parametrize(
    "above",
    [
        MODEL,
        f"@(lambda c: c)\n{END} of all\n{MODEL}",
        f"@(\n{END}\nlambda c: c)\n{END}\n{MODEL}",
        f"x = 1\n# @x\n@(lambda c: c)\n{END}\n@(lambda c: c)\n{END}\n{MODEL}",
        f"x = '''\n{END}\n'''\n{MODEL}",
        f"x = 1  # a\f b\x0b c\x1c d\x85 e\u2028 f\nx = '''\n{END}\n'''\n{MODEL}",
        f"x = 1\r\n\f# a\r{MODEL}",
    ],
    ids=["plain", "decorated", "brackets", "twice", "string", "form feeds", "ends of lines"],
)
def test_what_is_above_the_end_is_the_module(run, above):
    verdict, kernel = run(f"{above}{END} tests\nassert False\n", f"--until={END}")

    assert verdict["verdict"] == "PASS", verdict
    assert "ModelNew" in kernel
    assert "assert False" not in kernel


@pytest.mark.parametrize("until", ["@dec", "if 1", "def test"])
def test_a_statement_may_be_the_end(run, until):
    text = f"{MODEL}@decorated\ndef test():\n    pass\nif 1:\n    assert False\n"

    _, kernel = run(text, f"--until={until}")

    assert ("assert False" in kernel) == (until == "def test")  # it is within what is decorated
    assert ("decorated" in kernel) == (until != "@dec")


def test_what_cannot_be_cut_off_is_a_compile_error(run):
    verdict, _ = run(f"{MODEL}x = 1 \\\n{END}\n", f"--until={END}")

    assert (verdict["verdict"], verdict["reason"]) == ("FAIL", "COMPILE_ERROR")
    assert verdict["summary"].startswith("model.py: cannot be read: SyntaxError: ")


BRANCHES = "if 0:\n    pass\n" + "elif 0:\n    pass\n" * 1500


@pytest.mark.parametrize(
    "text",
    [MODEL + BRANCHES, f"{MODEL}x = {' + '.join('1' * 1200)}\n"],
    ids=["branches", "terms"],
)
def test_what_breaks_the_reader_is_a_compile_error(run, text):
    verdict, kernel = run(text)

    assert (verdict["verdict"], verdict["reason"]) == ("FAIL", "COMPILE_ERROR")
    assert kernel is None


def test_names_in_any_branch_are_defined(run):
    nested = "if 0:\n    pass\n" + "elif 0:\n    pass\n" * 100 + "else:\n    try:\n        pass\n"
    verdict, _ = run(f"{nested}    except ValueError:\n        ModelNew = 1\n")

    assert verdict["verdict"] == "PASS"


def test_only_the_source_is_blamed_for_what_only_it_breaks(gate, run, tmp_path, monkeypatch):
    def breaks(module):
        if module.text != "pass\n":
            raise IndexError("of our own")
        return "pass\n"

    monkeypatch.setattr(gate, "normalised", breaks)
    monkeypatch.setattr(kernel_source, "normalised", breaks)
    verdict, _ = run(MODEL)
    assert verdict["summary"] == "model.py: cannot be read: IndexError: of our own"

    def broken(_module):
        raise IndexError("of our own")

    monkeypatch.setattr(gate, "normalised", broken)
    monkeypatch.setattr(kernel_source, "normalised", broken)
    arguments = [f"--source={tmp_path / 'model.py'}", "--name=ModelNew"]
    assert gate.main([*arguments, f"--out={tmp_path / 'out'}"]) == 3


def test_a_module_that_is_read_for_too_long_is_at_fault(gate, run, monkeypatch):
    def endless(_module):
        while True:
            pass

    monkeypatch.setattr(reading, "SECONDS", 0.2)
    monkeypatch.setattr(gate, "normalised", endless)

    verdict, _ = run(MODEL)

    assert (verdict["verdict"], verdict["reason"]) == ("FAIL", "COMPILE_ERROR")
    assert "reading it takes more than 0.2 s of processor time" in verdict["summary"]


def test_lines_are_counted_as_python_does():
    text = "a\fb\n\x0bc\r\nd\x1c\re\u2028f"
    assert kernel_source.lines_of(text) == ["a\fb\n", "\x0bc\r\n", "d\x1c\r", "e\u2028f"]
    assert kernel_source.lines_of("") == []
    assert ast.parse("x = 1 \f\r\ny = 2\rz = 3\n").body[2].lineno == 3
