"""Tokens, places and layout: nothing is lost but comments and spaces."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from layout import lay_out
from lexer import Chunk, Token, lex
from rewriter import rewrite


def texts(source: str) -> list[str]:
    return [token.text for chunk in lex(source, "k.hip") for token in chunk.tokens]


@pytest.mark.parametrize(
    ("source", "tokens"),
    [
        ("a/* b */c//d\ne", ["a", "c", "e"]),
        ('f("/*", \'"\', "\\"//")', ["f", "(", '"/*"', ",", "'\"'", ",", '"\\"//"', ")"]),
        ('R"x(a)" // \n)x" + u8R"(b)"', ['R"x(a)" // \n)x"', "+", 'u8R"(b)"']),
        ("1'000'000 1e+5 0x1p-3f .5 1..2", ["1'000'000", "1e+5", "0x1p-3f", ".5", "1..2"]),
        ("a<<<b>>>(c)", ["a", "<<<", "b", ">>>", "(", "c", ")"]),
        ("a::b->*c <<= d", ["a", "::", "b", "->*", "c", "<<=", "d"]),
        ("#define A 'x'\nA", ["#", "define", "A", "'x'", "A"]),
        ("na\\\nme // co\\\nmment\nend", ["name", "end"]),
        ("#error don't\nx", ["#", "error", "don", "'", "t", "x"]),
        ("größe = 1;", ["größe", "=", "1", ";"]),
    ],
)
def test_tokens(source: str, tokens: list[str]) -> None:
    assert texts(source) == tokens


def test_directives_are_apart_from_code() -> None:
    chunks = lex("a\n  # if 1 /* two\n lines */ + \\\n 2\nb # c\n#endif", "k.hip")
    shape = [(chunk.directive, [t.text for t in chunk.tokens]) for chunk in chunks]
    assert shape == [
        (False, ["a"]),
        (True, ["#", "if", "1", "+", "2"]),
        (False, ["b", "#", "c"]),
        (True, ["#", "endif"]),
    ]


def test_raw_string_keeps_its_splices() -> None:
    assert texts('R"(a\\\nb)"') == ['R"(a\\\nb)"']


WORDS = st.sampled_from(
    ["a", "b2", "int", "1.5f", '"s // t"', "'\\''", "::", "<<", ">", "->", ";", "{", "}", "(", ")"]
)
SPACES = st.sampled_from([" ", "\n", "\t", " \\\n ", "/* c */", "// c\n", "\r\n", "/*\n*/ "])


@given(st.lists(st.tuples(SPACES, WORDS), min_size=1, max_size=40))
def test_places_point_at_the_tokens(pieces: list[tuple[str, str]]) -> None:
    source = "".join(space + word for space, word in pieces)
    lines = source.replace("\r\n", "\n").split("\n")
    tokens = [token for chunk in lex(source, "k.hip") for token in chunk.tokens]
    assert [token.text for token in tokens] == [word for _, word in pieces]
    for token in tokens:
        assert lines[token.line - 1][token.column - 1 :].startswith(token.text)


@given(st.lists(st.tuples(SPACES, WORDS, SPACES), min_size=1, max_size=40))
def test_layout_depends_on_tokens_alone(pieces: list[tuple[str, str, str]]) -> None:
    one = "".join(space + word for space, word, _ in pieces)
    two = "".join(space + word for _, word, space in pieces)
    assert laid(one) == laid(two)


@given(st.lists(st.tuples(SPACES, WORDS), min_size=1, max_size=40))
def test_layout_is_its_own_layout(pieces: list[tuple[str, str]]) -> None:
    once = laid("".join(space + word for space, word in pieces))
    assert laid(once) == once
    assert texts(once) == [word for _, word in pieces]


@given(st.lists(st.tuples(SPACES, WORDS), min_size=1, max_size=40))
def test_places_are_found_again_after_layout(pieces: list[tuple[str, str]]) -> None:
    source = "".join(space + word for space, word in pieces)
    chunks = lex(source, "k.hip")
    result = lay_out(chunks, "k.hip")
    tokens = [token for chunk in chunks for token in chunk.tokens]
    again = [token for chunk in lex(result.text, "out") for token in chunk.tokens]
    for before, after in zip(tokens, again, strict=True):
        place = result.original(after.line, after.column)
        assert (place.line, place.column) == (before.line, before.column)


def laid(source: str) -> str:
    return lay_out(lex(source, "k.hip"), "k.hip").text


def test_wave_operations_have_lines_of_their_own() -> None:
    text = laid("x = __shfl_up(a, 1) + __shfl_up(b, 1);")
    lines = [number for number, line in enumerate(text.split("\n")) if "__shfl" in line]
    assert len(lines) == 2


def rewritten(source: str) -> str:
    chunks = rewrite(lex(source, "k.hip"), "k.hip")
    return re.sub(r"\s+", "", lay_out(chunks, "k.hip").text)


@pytest.mark.parametrize(
    ("source", "result"),
    [
        ("k<<<1, 2>>>(3);", "HIPCPU_LAUNCH((k),(1,2),3);"),
        ("k<<<g, b, s, st>>>();", "HIPCPU_LAUNCH((k),(g,b,s,st));"),
        (
            "n::k<T, 4><<<f(1, 2), b>>>(a, h(b, c));",
            "HIPCPU_LAUNCH((n::k<T,4>),(f(1,2),b),a,h(b,c));",
        ),
        ("::k<A<B<int>>><<<1, 1>>>(x);", "HIPCPU_LAUNCH((::k<A<B<int>>>),(1,1),x);"),
        ("s<float>::k<<<1, 1>>>(x);", "HIPCPU_LAUNCH((s<float>::k),(1,1),x);"),
        ("(*table[i])<<<1, 1>>>(x);", "HIPCPU_LAUNCH(((*table[i])),(1,1),x);"),
        ("a = b; k<<<1, 1>>>(NULL, NULL + 1);", "a=b;HIPCPU_LAUNCH((k),(1,1),nullptr,NULL+1);"),
        ("k<(N > 2)><<<1, 1>>>(x);", "HIPCPU_LAUNCH((k<(N>2)>),(1,1),x);"),
        (
            "a<<<1, 1>>>(1), b<<<2, 2>>>(2);",
            "HIPCPU_LAUNCH((a),(1,1),1),HIPCPU_LAUNCH((b),(2,2),2);",
        ),
        ("#define L(k) k<<<1, 1>>>(x)\n", "#defineL(k)HIPCPU_LAUNCH((k),(1,1),x)"),
        ("x = A<B<C<int>>>(1);", "x=A<B<C<int>>>(1);"),
        ("x = a << b >> c;", "x=a<<b>>c;"),
        (
            "void f() { extern __shared__ float s[]; }",
            "voidf(){float(*consts)=(float(*))(hipcpu_context.dynamic_shared);}",
        ),
        (
            "void f() { extern __shared__ __align__(16) unsigned char s[]; }",
            "voidf(){unsignedchar(*consts)=(unsignedchar(*))(hipcpu_context.dynamic_shared);}",
        ),
        (
            "struct S { void f() { extern __shared__ alignas(16) T s[][4]; } };",
            "structS{voidf(){T(*consts)[4]=(T(*)[4])(hipcpu_context.dynamic_shared);}};",
        ),
        (
            "extern __shared__ float s[][4]; int x;",
            "staticconsthipcpu::DynamicShared<float[4]>s{};intx;",
        ),
        (
            'namespace n { extern "C" { extern __shared__ T s[]; } }',
            'namespacen{extern"C"{staticconsthipcpu::DynamicShared<T>s{};}}',
        ),
        ("__shared__ alignas(16) T s[4];", "__shared____align__(16)Ts[4];"),
        ("struct alignas(16) T {};", "structalignas(16)T{};"),
        ("extern int x;", "externintx;"),
        ("__noinline__ void f();", "__attribute__((noinline))voidf();"),
        ("__attribute__((__noinline__)) void f();", "__attribute__((__noinline__))voidf();"),
        ("hipLaunchKernel((const void*)k, g, b);", "hipLaunchKernel(k,g,b);"),
        ("hipLaunchKernel(k, g, b);", "hipLaunchKernel(k,g,b);"),
    ],
)
def test_rewriting(source: str, result: str) -> None:
    assert rewritten(source) == result


@given(st.lists(WORDS, max_size=30))
def test_what_is_plain_cxx_stays(words: list[str]) -> None:
    chunk = Chunk(tuple(Token("mark", word, 1, 1, spaced=True) for word in words), directive=False)
    assert rewrite([chunk], "k.hip") == [chunk]
