"""A message of a prototxt file, and what its fields must be: each is checked when it is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, NoReturn

from flopwatch.errors import UsageError


class Place(NamedTuple):
    """Where in which file something stands."""

    source: str
    line: int

    def refuse(self, happened: str, *, seen: str = "", todo: str = "") -> NoReturn:
        """Raise a UsageError that names the file and the line."""
        raise UsageError(f"{self.source}, line {self.line}: {happened}.", seen=seen, todo=todo)


class Number(float):
    """A number as it was written; `exact` is an integer where it was one."""

    exact: int | float

    def __new__(cls, value: int | float) -> Number:
        try:
            made = super().__new__(cls, value)
        except OverflowError:  # an integer of 400 digits
            made = super().__new__(cls, float("inf"))
        made.exact = value
        return made


class Word(str):
    """An identifier: the name of an enumerator, true or false."""


class Field(NamedTuple):
    """One `name: value` of a message."""

    name: str
    value: Value
    place: Place


@dataclass(frozen=True)
class Message:
    """Fields in the order in which they stand; `name` is that of the field which holds the message."""

    name: str
    place: Place
    fields: tuple[Field, ...] = ()

    @cached_property
    def _by_name(self) -> Mapping[str, list[Field]]:
        found: dict[str, list[Field]] = {}
        for field in self.fields:
            found.setdefault(field.name, []).append(field)
        return found

    def __contains__(self, name: str) -> bool:
        return name in self._by_name

    def __iter__(self) -> Iterator[Field]:
        return iter(self.fields)

    def all(self, name: str) -> list[Field]:
        """All fields of a name."""
        return self._by_name.get(name, [])

    def one(self, name: str) -> Field | None:
        """The only field of a name; two of them are an error."""
        found = self.all(name)
        if len(found) > 1:
            found[1].place.refuse(f"{name!r} stands a second time in {self.name!r}", seen=_seen(found[1].value))
        return found[0] if found else None

    def message(self, name: str) -> Message:
        """The message in a field; an empty one where there is none. Several are read as one, as protocol buffers merge them."""
        found = [_message(field) for field in self.all(name)]
        if not found:
            return Message(name, self.place)
        return Message(name, found[0].place, tuple(field for each in found for field in each.fields))

    def messages(self, name: str) -> list[Message]:
        """All messages in fields of a name."""
        return [_message(field) for field in self.all(name)]

    def integer(self, name: str, default: int | None = None, *, least: int = 0) -> int:
        """A whole number; without a default the field must be there."""
        field = self.one(name)
        if field is not None:
            return _integer(field, least)
        if default is None:
            self.place.refuse(f"{self.name!r} does not say its {name}", todo=f"Write {name}: N.")
        return default

    def integers(self, name: str, *, least: int = 0) -> tuple[int, ...]:
        """All whole numbers in fields of a name."""
        return tuple(_integer(field, least) for field in self.all(name))

    def number(self, name: str, default: float) -> float:
        """A number, whole or not."""
        field = self.one(name)
        return default if field is None else _number(field)

    def numbers(self, name: str) -> tuple[float, ...]:
        """All numbers in fields of a name."""
        return tuple(_number(field) for field in self.all(name))

    def flag(self, name: str, default: bool) -> bool:
        """True or false, also written t, f, 1 or 0."""
        field = self.one(name)
        if field is None:
            return default
        text = str(field.value.exact) if isinstance(field.value, Number) else str(field.value)
        known = {
            "true": True,
            "True": True,
            "t": True,
            "1": True,
            "false": False,
            "False": False,
            "f": False,
            "0": False,
        }
        if isinstance(field.value, Message) or text not in known:
            field.place.refuse(f"{name!r} must be true or false", seen=_seen(field.value))
        return known[text]

    def word(self, name: str, default: str = "") -> str:
        """The name of an enumerator, or a string; numbers of enumerators come as their digits."""
        field = self.one(name)
        return default if field is None else _text(field)

    def words(self, name: str) -> tuple[str, ...]:
        """All strings or names in fields of a name."""
        return tuple(_text(field) for field in self.all(name))

    def choice(self, name: str, known: tuple[str, ...], default: str) -> str:
        """One of the names of an enumeration, numbered from 0; raises UsageError for any other."""
        field = self.one(name)
        if field is None:
            return default
        text = _text(field)
        if text.isdigit() and int(text) < len(known):
            return known[int(text)]
        if text not in known:
            field.place.refuse(f"{name!r} cannot be {text}", todo=f"It is one of {', '.join(known)}.")
        return text


Value = str | Word | Number | Message


def _message(field: Field) -> Message:
    if not isinstance(field.value, Message):
        field.place.refuse(f"{field.name!r} must be a message in braces", seen=_seen(field.value))
    return field.value


def _integer(field: Field, least: int) -> int:
    value = field.value.exact if isinstance(field.value, Number) else None
    if not isinstance(value, int):
        field.place.refuse(f"{field.name!r} must be a whole number", seen=_seen(field.value))
    if value < least:
        field.place.refuse(f"{field.name!r} must be at least {least}", seen=_seen(field.value))
    return value


def _number(field: Field) -> float:
    if isinstance(field.value, Word) and field.value.lower() in ("inf", "infinity", "nan"):
        return float(field.value)
    if not isinstance(field.value, Number):
        field.place.refuse(f"{field.name!r} must be a number", seen=_seen(field.value))
    return float(field.value)


def _text(field: Field) -> str:
    if isinstance(field.value, Message):
        field.place.refuse(f"{field.name!r} must be a name", seen=_seen(field.value))
    return str(field.value.exact) if isinstance(field.value, Number) else str(field.value)


def _seen(value: Value) -> str:
    if isinstance(value, Message):
        return "It is a message in braces."
    return f"It is {value.exact if isinstance(value, Number) else repr(str(value))}."
