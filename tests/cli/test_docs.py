"""The documentation shows commands that exist, and links to files that exist."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from kabuild.cli.program import cli
from tests.testkit.cli import REPOSITORY

PAGES = sorted(
    [*REPOSITORY.glob("*.md"), *REPOSITORY.glob("docs/*.md"), *REPOSITORY.glob("rules/*/README.md")]
)
COMMAND = re.compile(r"^(?:\$ )?(kabuild .*)$", re.MULTILINE)
CORRECTNESS = REPOSITORY / "rules/harness/tools/correctness/gate.py"
LINK = re.compile(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)")
ADMISSION = REPOSITORY / "rules/harness/tools/admission/gate.py"
TO_A_HEADING = re.compile(r"\]\(([^)#:\s]*\.md|)#([^)]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def commands(page: Path) -> Iterator[list[str]]:
    """The words of each call of kabuild in a block of code, without what follows a ``#``."""
    for block in re.findall(r"```\w*\n(.*?)```", page.read_text(), re.DOTALL):
        for line in COMMAND.findall(block.replace("\\\n", "")):
            for part in line.split(" && "):
                words = shlex.split(part, comments=True)
                if words[0] == "kabuild":
                    yield words[1:]


def unknown(words: list[str]) -> str:
    """The word that is no command or flag of kabuild; empty where all are known."""
    command: click.Command = cli
    context = click.Context(cli)
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        found = command.get_command(context, words[0])
        if found is None:
            return words[0]
        command, words = found, words[1:]
    known = {opt for p in command.params for opt in (*p.opts, *p.secondary_opts)} | {"--help"}
    flags = words[: words.index("--")] if "--" in words else words
    given = [word.partition("=")[0] for word in flags if word.startswith("-")]
    return next((flag for flag in given if flag not in known), "")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_a_page_shows_what_exists(page: Path) -> None:
    assert not [words for words in commands(page) if unknown(words)]
    assert not [
        link for link in LINK.findall(page.read_text()) if not (page.parent / link).exists()
    ]


def test_each_stage_of_the_correctness_gate_is_described() -> None:
    stages = re.findall(r'"(\w+)": self\.', CORRECTNESS.read_text())
    page = (REPOSITORY / "docs/judging.md").read_text()
    assert stages[0] == "smoke"
    assert not [name for name in (*stages, "end:") if f"`{name}`" not in page]


def headings(page: Path) -> set[str]:
    """The headings of a page, as links name them."""
    found = HEADING.findall(page.read_text())
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in found}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_a_link_to_a_heading_finds_it(page: Path) -> None:
    links = TO_A_HEADING.findall(page.read_text())
    assert not [
        (path, name)
        for path, name in links
        if name not in headings(page.parent / path if path else page)
    ]


def test_an_imported_benchmark_has_its_reasons_of_admission_explained() -> None:
    page = (REPOSITORY / "docs/importing.md").read_text()
    explained = (REPOSITORY / "rules/harness/README.md").read_text().partition("## Admission")[2]
    assert "(../rules/harness/README.md#admission)" in page
    for reason in re.findall(r'Check\(\s*"(\w+)"', ADMISSION.read_text()):
        assert f"`{reason}`" in explained


def test_what_does_not_exist_is_found() -> None:
    assert len(list(commands(REPOSITORY / "docs/judging.md"))) >= 14
    assert unknown(["tset", "//..."]) == "tset"
    assert unknown(["cache", "gc", "--max_sizes=5G"]) == "--max_sizes"
    assert not unknown(["test", "--", "//tasks/...", "-//tasks/hip2hip/scan"])


def helps(command: click.Command, path: str) -> Iterator[tuple[str, str]]:
    """The help of a command and of those below it, by its path."""
    yield path, command.get_help(click.Context(command, info_name=path))
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from helps(below, f"{path} {name}")


@pytest.mark.parametrize(
    ("path", "text"), [pytest.param(*h, id=h[0]) for h in helps(cli, "kabuild")]
)
def test_each_help_fits_a_terminal_and_shows_an_example(path: str, text: str) -> None:
    assert not [line for line in text.splitlines() if len(line) > 80]
    assert f"  {path}" in text.partition("\n")[2]
    assert "..." not in text.partition("Commands:")[2], "a command's line was cut"
