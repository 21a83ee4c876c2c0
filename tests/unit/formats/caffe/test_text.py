"""The text format of protocol buffers."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flopwatch.errors import UsageError
from flopwatch.formats.caffe.message import Message, Number, Word
from flopwatch.formats.caffe.text import parse

FILE = "net.prototxt"


def plain(message: Message) -> list[tuple[str, Any]]:
    """A message as pairs; numbers as they were written, names and strings as text, messages as lists."""
    return [(field.name, _plain(field.value)) for field in message]


def _plain(value: Any) -> Any:
    if isinstance(value, Message):
        return plain(value)
    return value.exact if isinstance(value, Number) else str(value)


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("", []),
        ("# nothing but a comment", []),
        ('name: "net"', [("name", "net")]),
        ("name: 'net' # so it is called", [("name", "net")]),
        ("a: 1 b: -2 c: 3.5 d: 1e-3", [("a", 1), ("b", -2), ("c", 3.5), ("d", 0.001)]),
        ("e: .5f f: 0x1F g: 017", [("e", 0.5), ("f", 31), ("g", 15)]),
        ("a: inf b: -inf", [("a", "inf"), ("b", float("-inf"))]),
        ("pool: MAX bias_term: false", [("pool", "MAX"), ("bias_term", "false")]),
        ("a { b: 1 } c: { d: 2 } e < f: 3 >", [("a", [("b", 1)]), ("c", [("d", 2)]), ("e", [("f", 3)])]),
        ("dim: [1, 3, 224] none: []", [("dim", 1), ("dim", 3), ("dim", 224)]),
        ("layer [{ a: 1 }, { a: 2 }]", [("layer", [("a", 1)]), ("layer", [("a", 2)])]),
        ("a: 1, b: 2; c { d: 3; }, e: 4", [("a", 1), ("b", 2), ("c", [("d", 3)]), ("e", 4)]),
        ('a: "one" \'two\'\n "three"', [("a", "onetwothree")]),
        (r'a: "\"\\\n\x41\101\u00e9"', [("a", '"\\\nAAé')]),
        ("[some.extension] { a: 1 }", [("[some.extension]", [("a", 1)])]),
        ("a{b{c{}}}", [("a", [("b", [("c", [])])])]),
    ],
)  # fmt: skip
def test_what_is_read(text: str, fields: list[tuple[str, Any]]) -> None:
    assert plain(parse(text, FILE)) == fields


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("layer {\n  name: 'a'\n", 3, "the text ends inside 'layer' of line 1"),
        ("a: 1\nb {\n c {\n", 4, "the text ends inside 'c' of line 3"),
        ("a:", 1, "the text ends"),
        ("a: 1\n}", 2, "the name of a field was expected"),
        ("a: 1\nb 2", 2, "after 'b' a colon or an opening brace"),
        ("a: }", 1, "'a' has no value"),
        ("a: 'never\nclosed'", 1, "a string does not end on its line"),
        ("a: 1\n\n@", 3, "this is not prototxt"),
        ("a: [1 2]", 1, "goes on with a comma"),
        ("a: 12abc", 1, "this is not prototxt"),
        ("a: -MAX", 1, "a minus sign"),
        ("a { b: 1 >", 1, "the name of a field was expected"),
        ("a" + "{a" * 200, 1, "more than 100 deep"),
        ("\x00\x01", 1, "this is not prototxt"),
    ],
)
def test_what_is_refused(text: str, line: int, words: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse(text, FILE)
    assert f"{FILE}, line {line}: " in str(refused.value)
    assert words in str(refused.value)


def test_a_word_is_not_a_string() -> None:
    word, string = (field.value for field in parse("a: MAX b: 'MAX'", FILE))
    assert isinstance(word, Word)
    assert not isinstance(string, Word)


NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True)
VALUES = st.one_of(
    st.integers(-(2**63), 2**64 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(alphabet=st.characters(exclude_categories=("Cs",)), max_size=12),
)
FIELDS = st.recursive(
    st.lists(st.tuples(NAMES, VALUES), max_size=5),
    lambda inner: st.lists(st.tuples(NAMES, st.one_of(VALUES, inner)), max_size=5),
    max_leaves=20,
)


def written(fields: list[tuple[str, Any]], colon: str) -> str:
    parts: list[str] = []
    for name, value in fields:
        if isinstance(value, list):
            parts.append(f"{name}{colon} {{ # begins\n{written(value, colon)} }}")
        elif isinstance(value, str):
            parts.append(f"{name}: {quoted(value)}")
        else:
            parts.append(f"{name}: {value!r}")
    return "\n".join(parts)


def quoted(text: str) -> str:
    escaped = "".join(each if each.isalnum() and each.isascii() else f"\\U{ord(each):08x}" for each in text)
    return f'"{escaped}"'


@given(FIELDS, st.sampled_from(("", ":")))
def test_reading_gives_back_what_was_written(fields: list[tuple[str, Any]], colon: str) -> None:
    assert plain(parse(written(fields, colon), FILE)) == fields


@given(FIELDS, st.data())
def test_a_text_that_is_cut_off_is_read_or_refused(fields: list[tuple[str, Any]], data: st.DataObject) -> None:
    text = written(fields, "")
    cut = text[: data.draw(st.integers(0, len(text)))]
    try:
        read = plain(parse(cut, FILE))
    except UsageError as refused:
        assert FILE in str(refused)
    else:
        # Whole fields at the front are as they were; only the last one may have lost its end.
        assert read[:-1] == fields[: len(read) - 1 if read else 0]


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        parse(text, FILE)
    except UsageError as refused:
        assert FILE in str(refused)


MESSAGE = parse(
    "whole: 3\nbroken: 1.5\ntwice: 1 twice: 2\nyes: true\nword: MAX\nnegative: -1\ninner { a: 1 }\ninner { b: 2 }\nhuge: "
    + "9" * 400,
    FILE,
)


def test_fields_are_what_is_asked_for() -> None:
    assert MESSAGE.integer("whole") == 3
    assert MESSAGE.integer("absent", 7) == 7
    assert MESSAGE.integers("twice") == (1, 2)
    assert MESSAGE.number("broken", 0.0) == 1.5
    assert MESSAGE.number("whole", 0.0) == 3.0
    assert MESSAGE.flag("yes", False)
    assert MESSAGE.choice("word", ("AVE", "MAX"), "AVE") == "MAX"
    assert MESSAGE.choice("whole", ("a", "b", "c", "d"), "a") == "d"
    assert MESSAGE.integer("negative", least=-1) == -1
    assert plain(MESSAGE.message("inner")) == [("a", 1), ("b", 2)]
    assert MESSAGE.integer("huge") == int("9" * 400)


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda: MESSAGE.integer("broken"), "line 2: 'broken' must be a whole number"),
        (lambda: MESSAGE.integer("absent"), "does not say its absent"),
        (lambda: MESSAGE.integer("twice"), "line 3: 'twice' stands a second time"),
        (lambda: MESSAGE.integer("negative"), "line 6: 'negative' must be at least 0"),
        (lambda: MESSAGE.integer("word"), "line 5: 'word' must be a whole number"),
        (lambda: MESSAGE.flag("whole", True), "line 1: 'whole' must be true or false"),
        (lambda: MESSAGE.message("whole"), "line 1: 'whole' must be a message"),
        (lambda: MESSAGE.word("inner"), "line 8: 'inner' stands a second time"),
        (lambda: MESSAGE.choice("word", ("AVE",), "AVE"), "line 5: 'word' cannot be MAX"),
        (lambda: MESSAGE.number("word", 0.0), "line 5: 'word' must be a number"),
    ],
)
def test_fields_that_are_something_else(ask: Any, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        ask()
