"""Completion in bash, which takes a label or ``--flag=value`` for several words."""

from __future__ import annotations

import os

from click.shell_completion import BashComplete, CompletionItem, split_arg_string

_BREAKS = frozenset(":=")
"""The marks of ``$COMP_WORDBREAKS`` that labels and flags contain."""


class WholeWords(BashComplete):
    """Puts the pieces of a word together again, and offers only what follows its last break."""

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
