"""The text format of protocol buffers, as prototxt files are written in it: text in, a tree of messages out.

Written after the published grammar of the format (protobuf.dev, "Text Format Language Specification"): fields `name: value`, messages
in braces or angle brackets with the colon optional, short lists in square brackets, adjacent strings joined, `#` comments, commas and
semicolons allowed after a field. No schema is used: what a field must be is asked when it is read, see `message.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple, NoReturn

from flopwatch.formats.caffe.message import Field, Message, Number, Place, Value, Word

_TOKEN = re.compile(
    r"""(?P<blank>[ \t\r\n\f\v]+|\#[^\n]*)
    |(?P<number>(?:0[xX][0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[fF]?)(?![\w.]))
    |(?P<word>[A-Za-z_]\w*)
    |(?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    |(?P<sign>[-:;,{}<>\[\]/.])""",
    re.VERBOSE,
)
_ESCAPE = re.compile(r"\\(?:([0-7]{1,3})|[xX]([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))")
_NAMED = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_CLOSING = {"{": "}", "<": ">"}

# Deeper than any network description; keeps a file of nothing but braces from exhausting Python's stack.
_DEEPEST = 100


class _Token(NamedTuple):
    kind: str
    text: str
    line: int


def parse(text: str, source: str) -> Message:
    """The message that a text describes; raises UsageError with the line for text that is malformed or ends too soon."""
    tokens = list(_tokens(text, source))
    try:
        return Message("the file", Place(source, 1), tuple(_Reader(tokens, source).fields("", 0)))
    except _EndedError as ended:
        Place(source, tokens[-1].line).refuse(
            f"the text ends inside {ended.open or 'a field'}", todo="Is the file cut off?"
        )


def _tokens(text: str, source: str) -> Iterator[_Token]:
    position, line = 0, 1
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            rest = text[position:].partition("\n")[0]
            if rest[0] in "\"'":
                Place(source, line).refuse("a string does not end on its line", seen=_shown(rest))
            Place(source, line).refuse("this is not prototxt", seen=_shown(rest))
        kind = match.lastgroup or ""
        if kind != "blank":
            yield _Token(kind, match[0], line)
        line += match[0].count("\n")
        position = match.end()
    yield _Token("end", "", line)


class _Reader:
    def __init__(self, tokens: list[_Token], source: str) -> None:
        self._tokens = tokens
        self._source = source
        self._at = 0

    def fields(self, closing: str, depth: int) -> Iterator[Field]:
        """Fields up to a closing bracket, or to the end of the text where there is none."""
        while True:
            token = self._tokens[self._at]
            if token.text == closing and token.kind in ("sign", "end"):
                self._at += 1
                return
            yield from self._field(depth)

    def _field(self, depth: int) -> Iterator[Field]:
        token = self._take()
        if token.text == "[" and token.kind == "sign":
            name = self._extension()
        elif token.kind == "word" or (token.kind == "number" and token.text.isdigit()):
            name = token.text
        else:
            self._refuse(token, "the name of a field was expected")
        place = Place(self._source, token.line)
        colon = self._accept(":")
        if self._accept("["):
            if not self._accept("]"):
                while True:
                    yield Field(name, self._value(name, depth, colon), place)
                    if self._accept("]"):
                        break
                    self._expect(",", f"the list {name!r} goes on with a comma or ends with ]")
        else:
            yield Field(name, self._value(name, depth, colon), place)
        if not self._accept(","):
            self._accept(";")

    def _value(self, name: str, depth: int, colon: bool) -> Value:
        token = self._take()
        if token.kind == "sign" and token.text in _CLOSING:
            if depth >= _DEEPEST:
                self._refuse(token, f"messages are nested more than {_DEEPEST} deep")
            place = Place(self._source, token.line)
            inner = tuple(self._closed(name, place, _CLOSING[token.text], depth + 1))
            return Message(name, place, inner)
        if not colon:
            self._refuse(token, f"after {name!r} a colon or an opening brace was expected")
        if token.kind == "string":
            return self._string(token)
        minus = token.text == "-" and token.kind == "sign"
        if minus:
            token = self._take()
        if token.kind == "number":
            number = _number(token.text)
            return Number(-number if minus else number)
        if token.kind == "word":
            if minus and token.text.lower() not in ("inf", "infinity", "nan"):
                self._refuse(token, f"{name!r} has a minus sign before what is no number")
            return Number(float("-" + token.text)) if minus else Word(token.text)
        self._refuse(token, f"{name!r} has no value")

    def _closed(self, name: str, opened: Place, closing: str, depth: int) -> Iterator[Field]:
        try:
            yield from self.fields(closing, depth)
        except _EndedError as ended:
            raise _EndedError(ended.open or f"{name!r} of line {opened.line}") from None

    def _string(self, first: _Token) -> str:
        parts = [_unescaped(first.text[1:-1])]
        while self._tokens[self._at].kind == "string":
            parts.append(_unescaped(self._take().text[1:-1]))
        return "".join(parts)

    def _extension(self) -> str:
        parts: list[str] = []
        while not self._accept("]"):
            token = self._take()
            if token.kind != "word" and token.text not in ("/", ".", "-"):
                self._refuse(token, "the name of an extension was expected")
            parts.append(token.text)
        return "[" + "".join(parts) + "]"

    def _take(self) -> _Token:
        token = self._tokens[self._at]
        if token.kind == "end":
            raise _EndedError
        self._at += 1
        return token

    def _accept(self, sign: str) -> bool:
        token = self._tokens[self._at]
        if token.kind == "sign" and token.text == sign:
            self._at += 1
            return True
        return False

    def _expect(self, sign: str, otherwise: str) -> None:
        if not self._accept(sign):
            self._refuse(self._take(), otherwise)

    def _refuse(self, token: _Token, happened: str) -> NoReturn:
        Place(self._source, token.line).refuse(happened, seen=_shown(token.text))


class _EndedError(Exception):
    """The text ended inside `open`."""

    def __init__(self, open: str = "") -> None:
        self.open = open


def _number(text: str) -> int | float:
    if text[:2] in ("0x", "0X"):
        return int(text, 16)
    if text.isdigit():
        return int(text, 8) if len(text) > 1 and text[0] == "0" and not set(text) & set("89") else int(text)
    return float(text.rstrip("fF"))


def _unescaped(text: str) -> str:
    def character(match: re.Match[str]) -> str:
        octal, byte, short, long, other = match.groups()
        if octal:
            return chr(int(octal, 8))
        code = byte or short or long
        if code:
            return chr(min(int(code, 16), 0x10FFFF))
        return _NAMED.get(other, other)

    return _ESCAPE.sub(character, text)


def _shown(text: str) -> str:
    short = text if len(text) <= 40 else text[:40] + "…"
    return f"It says {short!r}."
