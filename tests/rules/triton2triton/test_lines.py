"""The lines of a normalised module lead back to the lines that its author wrote."""

from __future__ import annotations

from pathlib import Path

from kernel_source import normalised, original_lines, read_source

from tests.testkit.cli import REPOSITORY

STATEMENTS = {"def", "for", "import", "from", "return", "@triton.jit"}
WRITTEN = '''\
"""What it does."""
# A comment.
import triton


@triton.jit
def kernel(x,
           y):  # two lines become one
    """Says more."""
    if x:
        a = [
            1,
            2,
        ]
    else:
        # Another one.
        y = (x
             + 1)


def run(x):
    return kernel(x, 2)
'''


def test_each_line_leads_to_the_one_that_it_was(tmp_path: Path) -> None:
    file = tmp_path / "kernel.py"
    file.write_text(WRITTEN)
    source = read_source(file)
    text = normalised(source)

    found = dict(zip(text.splitlines(), original_lines(source, text), strict=True))

    assert {line.strip(): number for line, number in found.items() if line} == {
        "import triton": 3,
        "@triton.jit": 6,
        "def kernel(x, y):": 7,
        "if x:": 10,
        "a = [1, 2]": 11,
        "else:": 11,
        "y = x + 1": 17,
        "def run(x):": 21,
        "return kernel(x, 2)": 22,
    }


def test_statements_of_real_kernels_are_where_their_authors_wrote_them() -> None:
    for file in sorted(REPOSITORY.glob("tasks/triton2triton/*/**/*.py")):
        source = read_source(file)
        text, written = normalised(source), source.text.splitlines()
        pairs = zip(text.splitlines(), original_lines(source, text), strict=True)
        words = [
            (line.split()[0], written[number - 1].split()[0]) for line, number in pairs if line
        ]

        assert {"def", "@triton.jit"} & {word for word, _ in words} or "reference" in file.name
        assert [one for one, other in words if one != other and one in STATEMENTS] == []
