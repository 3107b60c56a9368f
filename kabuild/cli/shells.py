"""Completion of labels and of the values in ``--flag=value``, as each shell needs it."""

from __future__ import annotations

import os
from glob import glob

from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ZshComplete,
    split_arg_string,
)

_BREAKS = frozenset(":=")
"""The marks of ``$COMP_WORDBREAKS`` that labels and flags contain."""


class Bash(BashComplete):
    """Bash splits words at ``:`` and ``=``: joins them, and offers what follows the last break."""

    _typed = ""

    def get_completion_args(self) -> tuple[list[str], str]:
        """The words before the last one, and the last one as far as it is typed."""
        place = int(os.environ["COMP_CWORD"])
        pieces = split_arg_string(os.environ["COMP_WORDS"])[1 : place + 1]
        words = _whole(pieces)
        if len(pieces) < place:  # a new word
            return words, ""
        incomplete = words.pop() if words else ""
        self._typed = _before_last_break(incomplete, pieces)
        return words, incomplete

    def format_completion(self, item: CompletionItem) -> str:
        """An item as the shell's function reads it, without what bash keeps of the word."""
        return f"{item.type},{item.value.removeprefix(self._typed)}"


class Zsh(ZshComplete):
    """Zsh replaces the whole word: offers it with ``--flag=``, and files after that."""

    def source(self) -> str:
        """The script to evaluate."""
        return super().source().replace("{\n", "{\n    compset -P 1 '-*='\n", 1)

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem]:
        """The words that can follow, each whole."""
        flag = _flag(incomplete)
        found = super().get_completions(args, incomplete)
        return [
            CompletionItem(flag + item.value, help=item.help) if item.type == "plain" else item
            for item in found
        ]


class Fish(FishComplete):
    """Fish replaces the whole word: offers it with ``--flag=``, also that of a file."""

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem]:
        """The words that can follow, each whole."""
        flag = _flag(incomplete)
        found = super().get_completions(args, incomplete)
        if not flag:
            return found
        offered = [item.value for item in found if item.type == "plain"]
        if len(offered) < len(found):  # an item stands for all files, or all directories
            offered += sorted(glob(f"{incomplete.removeprefix(flag)}*"))
        return [CompletionItem(flag + value) for value in offered]


def _flag(word: str) -> str:
    """``--flag=`` of ``--flag=value``, or nothing."""
    name, equals, _ = word.partition("=")
    return name + equals if equals and word.startswith("-") else ""


def _whole(pieces: list[str]) -> list[str]:
    words: list[str] = []
    continues = False
    for piece in pieces:
        is_break = bool(piece) and set(piece) <= _BREAKS
        if words and (is_break or continues):
            words[-1] += piece
        else:
            words.append(piece)
        continues = is_break
    return words


def _before_last_break(word: str, pieces: list[str]) -> str:
    """What bash keeps of ``word``; of ``--flag=value`` only the value is completed."""
    last = pieces[-1] if pieces else ""
    kept = word if set(last) <= _BREAKS else word.removesuffix(last)
    return kept.partition("=")[2] if kept.startswith("-") and "=" in kept else kept
