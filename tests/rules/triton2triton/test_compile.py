"""The compile gate of Triton tasks: what it normalises, what it refuses and where."""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls

import json
import subprocess
import sys
from pathlib import Path

import compile as gate
import pytest
from terms import verdict as verdict_writer

TOOL = Path(gate.__file__)
# The gate finds what writes verdicts beside itself.
BESIDE = {"PYTHONPATH": str(Path(verdict_writer.__file__).parents[1])}
SIGNATURE = {
    "inputs": [["x", "T", ["rows", "cols"]]],
    "outputs": [["y", "T", ["rows", "cols"]]],
    "scalars": [["eps", 1e-5]],
    "dims": ["rows", "cols"],
}
GOOD = '''"""Scale."""
import triton
import triton.language as tl
WIDTH: tl.constexpr = 8

# A comment.
@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    """Copy."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)   # lanes
    for _ in range(2):
        tl.store(y + i, tl.load(x + i, mask=i < n), mask=i < n)

def copy(x, y, *, eps, rows, cols):
    kernel[(rows,)](x, y, rows * cols, BLOCK=8)
'''


@pytest.fixture
def run(tmp_path):
    def judge(text, entry="copy"):
        source = tmp_path / "copy.py"
        source.write_bytes(text if isinstance(text, bytes) else text.encode())
        out = tmp_path / "out"
        out.mkdir(exist_ok=True)
        for left in out.iterdir():
            left.unlink()
        signature = tmp_path / "signature.json"
        signature.write_text(json.dumps(SIGNATURE))
        arguments = [f"--source={source}", f"--entry={entry}", f"--signature={signature}"]
        assert gate.main([*arguments, f"--out={out}"]) == 0
        verdict = json.loads((out / "verdict.json").read_bytes())
        kernel = out / "kernel.py"
        return verdict, kernel.read_text() if kernel.exists() else None

    return judge


def replaced(old: str, new: str) -> str:
    assert old in GOOD
    return GOOD.replace(old, new)


def test_a_good_module_passes_and_is_normalised(run):
    verdict, kernel = run(GOOD)
    assert (verdict["verdict"], verdict["reason"], verdict["gate"]) == ("PASS", "", "compile")
    assert "comment" not in kernel
    assert "Scale" not in kernel
    assert '"""' not in kernel
    assert kernel.endswith("\n")
    compile(kernel, "kernel.py", "exec")


@pytest.mark.parametrize(
    "edited",
    [
        replaced("# A comment.", "# Another comment,\n# of two lines."),
        replaced('"""Copy."""', '"""Copy x to y."""'),
        replaced('    """Copy."""\n', ""),
        replaced("tl.arange(0, BLOCK)   # lanes", "tl.arange(\n        0, BLOCK)"),
        GOOD.replace("\n", "\r\n"),
        "\ufeff" + GOOD,
        replaced("    kernel[(rows,)]", "    'a note'\n    kernel[(rows,)]"),
    ],
)
def test_edits_without_meaning_change_nothing(run, edited):
    assert run(edited) == run(GOOD)


LAUNCH = "    kernel[(rows,)](x, y, rows * cols, BLOCK=8)\n"
MAKER = "def make():\n    return kernel, 8\n\nlaunched, block = make()\n\ndef copy"


@pytest.mark.parametrize(
    "edited",
    [
        replaced(LAUNCH, "    functools.partial(kernel[(rows,)], x, y)(rows * cols, BLOCK=8)\n"),
        replaced("def copy", MAKER).replace("    kernel[", "    launched["),
        replaced("def copy", "if WIDTH:\n    launched = kernel\n\ndef copy").replace(
            "    kernel[", "    launched["
        ),
        replaced("def copy", "for launched in (kernel,):\n    pass\n\ndef copy").replace(
            "    kernel[", "    launched["
        ),
    ],
    ids=["partial", "of several", "in a branch", "in a loop"],
)
def test_a_kernel_is_launched_however_its_launcher_is_named(run, edited):
    assert run(edited.replace("import triton\n", "import functools\nimport triton\n"))[1]


def test_a_local_name_of_another_function_launches_nothing(run):
    other = "def other():\n    y = kernel\n    return y\n\ndef copy"
    edited = replaced("def copy", other).replace(LAUNCH, "    print(y[0])\n    y.copy_(x)\n")
    verdict, _ = run(edited)
    assert "no Triton kernel is launched" in verdict["summary"]


STAND_IN = "# copy.py was not handed in: it is binary: byte 3 is zero\n"


def test_what_stands_for_a_refused_file_says_why(run):
    verdict, kernel = run(STAND_IN)

    assert (verdict["verdict"], verdict["reason"]) == ("FAIL", "NOT_HANDED_IN")
    assert verdict["summary"] == "the agent's copy.py was refused: it is binary: byte 3 is zero"
    assert kernel is None


@pytest.mark.parametrize(
    "text", [STAND_IN + "\n", STAND_IN.replace("copy", "other"), f" {STAND_IN}", STAND_IN[:-1] * 20]
)
def test_any_other_comment_is_a_module_without_an_entry(run, text):
    assert run(text)[0]["reason"] == "MISSING_ENTRY"


def test_a_module_that_quotes_a_refusal_is_judged_as_it_is(run):
    assert run(STAND_IN + GOOD) == run(GOOD)


def test_edits_with_meaning_show(run):
    assert run(replaced("BLOCK=8", "BLOCK=16"))[1] != run(GOOD)[1]


def test_normalisation_is_idempotent_and_keeps_emptied_bodies(run):
    text = replaced("def copy", 'class Marker:\n    """Nothing else."""\n\ndef copy')
    kernel = run(text)[1]
    assert "class Marker:\n    pass" in kernel
    assert run(kernel)[1] == kernel


REFUSED = {
    "syntax": (replaced("i < n), mask", "i < n), mask=="), "COMPILE_ERROR", 12, "invalid syntax"),
    "indent": (replaced("    for _", "   for _"), "COMPILE_ERROR", 11, "unindent"),
    "no entry": (replaced("def copy(", "def other("), "MISSING_ENTRY", None, "no function 'copy'"),
    "tensors": (replaced("def copy(x, y,", "def copy(y, x,"), "MISSING_ENTRY", 14, "(x, y)"),
    "dims": (replaced("rows, cols):", "rows):"), "MISSING_ENTRY", 14, "'cols' by keyword"),
    "extra": (replaced("cols):", "cols, k):"), "MISSING_ENTRY", 14, "takes 'k'"),
    "posonly": (replaced("*, eps, rows, cols", "eps, rows, cols, /"), "MISSING_ENTRY", 14, "'eps'"),
    "async": (replaced("def copy(", "async def copy("), "MISSING_ENTRY", 14, "async"),
    "os": (replaced("import triton\n", "import os\n"), "UNSUPPORTED_FEATURE", 2, "'os'"),
    "reference": (
        replaced("import triton\n", "import reference\n"), "UNSUPPORTED_FEATURE", 2, "'reference'",
    ),
    "relative": (
        replaced("import triton\n", "from . import harness\n"), "UNSUPPORTED_FEATURE", 2, "'.'",
    ),
    "torch member": (
        replaced("import triton\n", "from torch import _C\n"), "UNSUPPORTED_FEATURE", 2, "_C",
    ),
    "star": (
        replaced("import triton\n", "from torch import *\n"), "UNSUPPORTED_FEATURE", 2, "import *",
    ),
    "eval": (replaced("BLOCK=8", "BLOCK=eval('8')"), "UNSUPPORTED_FEATURE", 15, "'eval'"),
    "import function": (
        replaced("BLOCK=8", "BLOCK=__import__('os')"), "UNSUPPORTED_FEATURE", 15, "'__import__'",
    ),
    "dunder": (
        replaced("BLOCK=8", "BLOCK=tl.__dict__"), "UNSUPPORTED_FEATURE", 15, "'__dict__'",
    ),
    "getattr": (
        replaced("BLOCK=8", "BLOCK=getattr(tl, eps)"), "UNSUPPORTED_FEATURE", 15, "literal name",
    ),
    "module of a module": (
        replaced("BLOCK=8", "BLOCK=triton.sys"), "UNSUPPORTED_FEATURE", 15, "'sys'",
    ),
    "torch.load": (
        replaced("BLOCK=8", "BLOCK=torch.load(x)"), "UNSUPPORTED_FEATURE", 15, "'load'",
    ),
    "no kernel": (
        replaced("@triton.jit\n", ""), "UNSUPPORTED_FEATURE", None, "no Triton kernel",
    ),
    "no launch": (
        replaced("kernel[(rows,)](x, y, rows * cols, BLOCK=8)", "y.copy_(x)"),
        "UNSUPPORTED_FEATURE", 14, "no Triton kernel is launched",
    ),
    "break": (
        replaced("        tl.store", "        break\n        tl.store"),
        "COMPILE_ERROR", 12, "'Break'",
    ),
    "try": (replaced(
        "        tl.store(y + i, tl.load(x + i, mask=i < n), mask=i < n)",
        "        pass\n    try:\n        pass\n    finally:\n        pass",
    ), "COMPILE_ERROR", 13, "'Try'"),
    "lambda": (replaced("range(2)", "range((lambda: 2)())"), "COMPILE_ERROR", 11, "'Lambda'"),
    "chain": (replaced("mask=i < n)\n", "mask=0 <= i < n)\n"), "COMPILE_ERROR", 12, "chained"),
    "membership": (replaced("range(2)", "range(BLOCK in n)"), "COMPILE_ERROR", 11, "'In'"),
    "list loop": (replaced("in range(2)", "in [1, 2]"), "COMPILE_ERROR", 11, "loops over range"),
    "return": (replaced("        tl.store", "        return\n        tl.store"),
               "COMPILE_ERROR", 12, "return from within a loop"),
    "global": (replaced("WIDTH: tl.constexpr = 8", "WIDTH = 8").replace("range(2)", "range(WIDTH)"),
               "COMPILE_ERROR", 11, "global 'WIDTH'"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "reason", "line", "what"), REFUSED.values(), ids=REFUSED)
def test_refusals_name_the_reason_and_the_line(run, text, reason, line, what):
    verdict, kernel = run(text)
    assert (verdict["verdict"], verdict["reason"]) == ("FAIL", reason)
    assert what in verdict["summary"]
    assert verdict["summary"].startswith(f"copy.py:{line}: " if line else "copy.py: ")
    assert kernel is None


@pytest.mark.parametrize("data", [b"\xff\xfe", b"x = '\0'", b"(" * 5000, b"x" * (1 << 21)])
def test_what_is_no_source_is_a_compile_error(run, data):
    verdict, kernel = run(data)
    assert (verdict["verdict"], verdict["reason"], kernel) == ("FAIL", "COMPILE_ERROR", None)


@pytest.mark.parametrize(
    "text",
    [
        replaced("def copy(x, y, *, eps, rows, cols)", "def copy(x, y, eps, rows, cols, k=1)"),
        replaced("def copy(x, y, *, eps, rows, cols)", "def copy(x, y, *, rows, **rest)"),
        replaced("WIDTH: tl.constexpr = 8", "WIDTH = tl.constexpr(8)").replace("(2)", "(WIDTH)"),
        replaced("range(2):\n", "tl.static_range(2):\n        return\n"),
        replaced("def copy", "CHOICES = {'a': kernel}\n\ndef launch(x, y, n):\n"
                 "    CHOICES['a'][(1,)](x, y, n, BLOCK=8)\n\ndef copy").replace(
            "    kernel[(rows,)](x, y, rows * cols, BLOCK=8)", "    launch(x, y, rows)"),
        replaced("@triton.jit", "@triton.autotune(configs=[], key=[])\n@triton.jit(noinline=True)"),
        replaced("import triton\n", "import triton, torch, math\nfrom typing import Any\n"
                 "from triton.language.extra import libdevice\n"),
    ],
    ids=["defaults", "keywords", "constexpr", "static loop", "indirect", "decorated", "imports"],
)  # fmt: skip
def test_honest_variety_passes(run, text):
    verdict, _ = run(text)
    assert verdict["verdict"] == "PASS", verdict


TERMS = "x = " + " + ".join("1" * 1200) + "\n"
NAMES = "".join(f"a{i} = 1\n" for i in range(20_000))


@pytest.mark.parametrize(
    "text",
    [GOOD + TERMS, GOOD + "if 0:\n    pass\n" + "elif 0:\n    pass\n" * 1500],
    ids=["terms", "branches"],
)
def test_what_breaks_the_reader_is_a_compile_error(run, text):
    verdict, kernel = run(text)
    assert (verdict["verdict"], verdict["reason"], kernel) == ("FAIL", "COMPILE_ERROR", None)


def test_a_kernel_s_names_are_looked_up_one_by_one(run):
    """The product of both numbers is more than a gate has time for."""
    text = replaced("    for _ in", f"    {'n; ' * 50_000}\n    for _ in")
    verdict, _ = run(NAMES + text)
    assert verdict["verdict"] == "PASS", verdict


def test_a_name_of_many_definitions_is_followed_once(run):
    edited = replaced("def copy", "b = 1\n" * 10_000 + "def copy")
    verdict, _ = run(edited + f"    {'b; ' * 10_000}\n")
    assert verdict["verdict"] == "PASS", verdict


BLOCKS = {
    "finally": "try:\n    x = 1\nfinally:\n    {}\n",
    "handlers": "try:\n    {0}\nexcept ValueError:\n    {0}\nelse:\n    {0}\nfinally:\n    {0}\n",
    "group": "try:\n    {0}\nexcept* ValueError:\n    {0}\n",
    "match": "match 1:\n    case 1:\n        {0}\n    case _:\n        {0}\n",
    "branches": "if 0:\n    {0}\nelif 1:\n    {0}\nelse:\n    {0}\n",
    "loops": "for x in ():\n    {0}\nelse:\n    {0}\nwhile 0:\n    {0}\nelse:\n    {0}\n",
    "with": "def f(x):\n    with x:\n        {}\n",
    "class": "class C:\n    {0}\n    class D:\n        {0}\n",
    "functions": "def f():\n    {0}\nasync def g(x):\n    async with x:\n        {0}\n",
    "lambda": "f = lambda: ...\ng = 1 if f else ...\n{0}\n",
}


@pytest.mark.parametrize("constant", ["...", "'a note'", "'a'; 1"])
@pytest.mark.parametrize("block", BLOCKS.values(), ids=BLOCKS)
def test_a_block_of_constants_alone_stays_one(run, block, constant):
    verdict, kernel = run(block.format(constant) + GOOD)
    assert verdict["verdict"] == "PASS", verdict
    compile(kernel, "kernel.py", "exec")
    assert run(kernel)[1] == kernel


def test_the_tool_runs_alone_and_writes_canonical_bytes(tmp_path):
    (tmp_path / "copy.py").write_text(GOOD)
    (tmp_path / "signature.json").write_text(json.dumps(SIGNATURE))
    (tmp_path / "out").mkdir()
    arguments = ["--source=copy.py", "--entry=copy", "--signature=signature.json", "--out=out"]
    command = [sys.executable, "-S", str(TOOL), *arguments]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False, env=BESIDE)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    data = (tmp_path / "out" / "verdict.json").read_bytes()
    value = json.loads(data)
    canonical = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert data == canonical.encode() + b"\n"
    assert value["schema"] == 1


def test_a_wrong_command_line_is_no_verdict(tmp_path):
    done = subprocess.run(
        [sys.executable, str(TOOL), "--entry=x"],
        capture_output=True,
        check=False,
        cwd=tmp_path,
        env=BESIDE,
    )
    assert done.returncode == 2
