"""What HIP adds to the grammar of C++, as C++.

* ``kernel<T><<<grid, block, shared, stream>>>(arguments)`` → ``HIPCPU_LAUNCH(…)``
* ``extern __shared__ T name[];`` → a pointer to the block's dynamic shared memory
* ``__shared__ alignas(16)`` → ``__shared__ __align__(16)``
* ``__noinline__`` → the attribute; as a macro it would break headers that spell the attribute so
* ``hipLaunchKernel((const void*)kernel, …)`` → without the cast, which hides the arguments' types
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from faults import Position, SourceFault, source_fault
from grammar import scoped_tokens, without_alignment
from lexer import Chunk, Token

_CLOSING = {"(": ")", "[": "]", "{": "}"}
_OPENING = {close: opening for opening, close in _CLOSING.items()}
_ERASURES = (
    ("(", "const", "void", "*", ")"),
    ("(", "void", "*", ")"),
    ("reinterpret_cast", "<", "const", "void", "*", ">"),
    ("reinterpret_cast", "<", "void", "*", ">"),
)


def rewrite(chunks: Sequence[Chunk], path: str) -> list[Chunk]:
    """Rewrite every chunk, the bodies of macros included."""
    in_namespace = frozenset(token for token, scope in scoped_tokens(chunks) if scope.in_namespace)
    return [
        Chunk(tuple(_Rewriter(chunk.tokens, path, in_namespace).run()), chunk.directive)
        for chunk in chunks
    ]


class _Rewriter:
    """One pass over the tokens of a chunk; ``_out`` is what has been rewritten so far."""

    def __init__(self, tokens: Sequence[Token], path: str, in_namespace: frozenset[Token]) -> None:
        self._tokens = tokens
        self._path = path
        self._in_namespace = in_namespace
        self._out: list[Token] = []

    def run(self) -> list[Token]:
        index = 0
        while index < len(self._tokens):
            index = self._step(index)
        return self._out

    def _step(self, index: int) -> int:
        token = self._tokens[index]
        if token.text == "<<<":
            return self._launch(index)
        if token.text == "extern" and self._text(index + 1) == "__shared__":
            return self._dynamic_shared(index)
        if token.text == "__noinline__" and not (self._out and self._out[-1].text in {"(", ","}):
            self._out += _spell(token, "__attribute__", "(", "(", "noinline", ")", ")")
            return index + 1
        if token.text == "alignas" and self._out and self._out[-1].text == "__shared__":
            # HIP's qualifier is an attribute, which alignas may follow; ours is `static`.
            self._out.append(token._replace(text="__align__"))
            return index + 1
        self._out.append(token)
        if token.text == "hipLaunchKernel" and self._text(index + 1) == "(":
            self._out.append(self._tokens[index + 1])
            return self._skip_erasure(index + 2)
        return index + 1

    def _launch(self, index: int) -> int:
        mark = self._tokens[index]
        start = self._kernel_start(mark)
        kernel = self._out[start:]
        if not kernel:
            raise self._fault(mark, "'<<<' does not follow a kernel")
        del self._out[start:]
        close = self._configuration_end(index)
        shape = self._tokens[index + 1 : close]
        if self._text(close + 1) != "(":
            raise self._fault(self._tokens[close], "expected '(' after '>>>'")
        end = self._match(close + 1)
        arguments = _Rewriter(self._tokens[close + 2 : end], self._path, self._in_namespace).run()
        first = kernel[0]
        self._out += _spell(first, "HIPCPU_LAUNCH", "(", "(")
        self._out += [first._replace(spaced=False), *kernel[1:]]
        self._out += [*_spell(mark, ")", ",", "("), *shape, *_spell(mark, ")")]
        for argument in _split_arguments(arguments) if arguments else ():
            self._out += [*_spell(mark, ","), *_null_pointer(argument)]
        self._out += _spell(self._tokens[end], ")")
        return end + 1

    def _kernel_start(self, mark: Token) -> int:
        """Where in the output the kernel begins: ``a::b<c>`` or a parenthesised expression."""
        at = len(self._out)
        if at and self._out[at - 1].text in {">", ">>", ">>>"}:
            at = self._angle_start(at - 1, mark)
        elif at and self._out[at - 1].text == ")":
            return self._bracket_start(at - 1, mark)
        if at == 0 or self._out[at - 1].kind != "name":
            return len(self._out)
        at -= 1
        while at and self._out[at - 1].text == "::":
            at -= 1
            if at and self._out[at - 1].text == ">":
                at = self._angle_start(at - 1, mark)
            if at and self._out[at - 1].kind == "name":
                at -= 1
        return at

    def _angle_start(self, at: int, mark: Token) -> int:
        """The index of the ``<`` that the ``>`` at ``at`` closes."""
        depth = 0
        while at >= 0:
            text = self._out[at].text
            if text in {">", ">>", ">>>"}:
                depth += len(text)
            elif text in _OPENING:
                at = self._bracket_start(at, mark)
            elif text == "<":
                depth -= 1
                if depth == 0:
                    return at
            at -= 1
        raise self._fault(mark, "cannot find the beginning of the kernel's template arguments")

    def _bracket_start(self, at: int, mark: Token) -> int:
        depth = 0
        for index in range(at, -1, -1):
            text = self._out[index].text
            depth += (text in _OPENING) - (text in _CLOSING)
            if depth == 0:
                return index
        raise self._fault(mark, "unbalanced brackets before '<<<'")

    def _configuration_end(self, index: int) -> int:
        at = index + 1
        while at < len(self._tokens):
            text = self._tokens[at].text
            if text == ">>>":
                return at
            at = self._match(at) + 1 if text in _CLOSING else at + 1
        raise self._fault(self._tokens[index], "'<<<' without '>>>'")

    def _match(self, index: int) -> int:
        """The index of the bracket that closes the one at ``index``."""
        depth = 0
        for at in range(index, len(self._tokens)):
            text = self._tokens[at].text
            depth += (text in _CLOSING) - (text in _OPENING)
            if depth == 0:
                return at
        reason = "unbalanced brackets (a launch cannot span a preprocessor directive)"
        raise self._fault(self._tokens[index], reason)

    def _dynamic_shared(self, index: int) -> int:
        """``extern __shared__ T name[][N];`` → ``T (*const name)[N] = …;``.

        Outside functions there is no block yet whose memory it could point to: an object stands
        there, which finds it when it is used.
        """
        end = index
        while self._text(end) not in {";", ""}:
            end += 1
        body = without_alignment(self._tokens[index + 2 : end])
        opening = next((i for i, token in enumerate(body) if token.text == "["), 0)
        if opening < 2 or len(body) < opening + 2 or body[opening + 1].text != "]":
            reason = "expected 'extern __shared__ TYPE NAME[];'"
            raise self._fault(self._tokens[index], reason)
        name, kind, rest = body[opening - 1], body[: opening - 1], body[opening + 2 :]
        if self._tokens[index] in self._in_namespace:
            self._out += _spell(
                self._tokens[index], "static", "const", "hipcpu::DynamicShared", "<"
            )
            self._out += [*kind, *rest, *_spell(name, ">"), name._replace(spaced=True)]
            self._out += _spell(name, "{", "}")
            return end
        kind = [kind[0]._replace(spaced=self._tokens[index].spaced), *kind[1:]]
        self._out += [*kind, *_spell(name, "(", "*", "const"), name._replace(spaced=True)]
        self._out += [*_spell(name, ")"), *rest, *_spell(name, "=", "(")]
        self._out += [kind[0]._replace(spaced=False), *kind[1:], *_spell(name, "(", "*", ")")]
        self._out += [*rest, *_spell(name, ")", "(", "hipcpu_context.dynamic_shared", ")")]
        return end

    def _skip_erasure(self, index: int) -> int:
        for erasure in _ERASURES:
            texts = tuple(token.text for token in self._tokens[index : index + len(erasure)])
            if texts == erasure:
                return index + len(erasure)
        return index

    def _text(self, index: int) -> str:
        return self._tokens[index].text if index < len(self._tokens) else ""

    def _fault(self, token: Token, reason: str) -> SourceFault:
        return source_fault(Position(self._path, token.line, token.column), "error", reason)


def _split_arguments(tokens: Iterable[Token]) -> list[list[Token]]:
    """Split at the commas outside brackets."""
    parts: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        depth += (token.text in _CLOSING) - (token.text in _OPENING)
        if token.text == "," and depth == 0:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def _null_pointer(argument: Sequence[Token]) -> list[Token]:
    """NULL is an integer once a template has deduced its type; ``nullptr`` stays a pointer."""
    if len(argument) == 1 and argument[0].text == "NULL":
        return [argument[0]._replace(text="nullptr")]
    return list(argument)


def _spell(place: Token, *texts: str) -> list[Token]:
    """Tokens of our own, which count as standing at ``place``; the first keeps its spacing."""
    spelt = [Token("mark", text, place.line, place.column, spaced=True) for text in texts]
    return [spelt[0]._replace(spaced=place.spaced), *spelt[1:]]
