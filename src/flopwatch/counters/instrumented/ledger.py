"""Read the engine's ledgers: what each process image executed, as blocks. The layout is that of engine/engine.h."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from flopwatch.counters import ProcessImage, Region, Thread
from flopwatch.counters.instrumented.masks import masked_offsets
from flopwatch.events import Block
from flopwatch.scope import Scope

MAX_BLOCKS = 1 << 20
MAX_LANES = 1 << 18
NOTES, NOTE_BYTES, MAX_NOTES = 0x1000, 256, 64
THREADS, MAX_THREADS = 0x10000, 4096
REGIONS = 0x60000
BLOCKS = 0x300000
CODE = BLOCKS + 32 * MAX_BLOCKS
AREAS = CODE + (64 << 20)
AREA_BYTES = 8 * MAX_BLOCKS + 8 * MAX_LANES

HEADER = struct.Struct("<8s6I12Q1024s1024s")
THREAD = struct.Struct("<4I16s32s")
REGION = struct.Struct("<QQQII216sQ")
BLOCK = struct.Struct("<QIHHIIQ")

RUNNING, FINISHED, EXECUTING = 1, 2, 3
HOW = ("spawn", "fork", "exec", "attach", "called", "vfork")
THREAD_RUNNING, THREAD_ENDED, THREAD_LEFT, THREAD_EXEC = 1, 2, 3, 4
HIDDEN = ("APX", "AVX10", "HLE", "RTM")

View = memoryview


@dataclass(frozen=True, slots=True)
class Header:
    """The head of a ledger."""

    state: int
    pid: int
    parent: int
    how: str
    exit_code: int
    blocks: int
    regions: int
    threads: int
    lanes: int
    notes: int
    overflow: int
    imports: int
    lost_children: int
    unsaved: int
    hidden: tuple[str, ...]
    command: tuple[str, ...]
    executing: str


def _text(raw: bytes) -> str:
    return os.fsdecode(raw.split(b"\0", 1)[0])


def header(view: View) -> Header:
    """Read the head. Raises ValueError if this is no ledger, or one of another version."""
    if len(view) < HEADER.size:
        raise ValueError("too short for a ledger")
    fields = HEADER.unpack_from(view, 0)
    (
        magic,
        version,
        state,
        pid,
        parent,
        how,
        exit_code,
        blocks,
        _,
        regions,
        threads,
        lanes,
        notes,
        _,
        overflow,
        imports,
        lost,
        hidden,
        unsaved,
    ) = fields[:19]
    if magic != b"FLOPWTCH" or version != 1:
        raise ValueError(f"not a ledger of version 1: {magic!r}, {version}")
    command, executing = fields[19:]
    words = command.rstrip(b"\0").split(b"\0") if command.rstrip(b"\0") else []
    return Header(
        state, pid, parent, HOW[how], exit_code, blocks, regions, min(threads, MAX_THREADS), lanes, notes, overflow, imports, lost, unsaved,
        tuple(name for bit, name in enumerate(HIDDEN) if hidden >> bit & 1),
        tuple(os.fsdecode(word) for word in words), _text(executing),
    )  # fmt: skip


def notes(view: View, head: Header) -> list[str]:
    """What the engine had to say, in its order."""
    found = [_text(bytes(view[NOTES + i * NOTE_BYTES :][:NOTE_BYTES])) for i in range(min(head.notes, MAX_NOTES))]
    if head.notes > MAX_NOTES:
        found.append(f"and {head.notes - MAX_NOTES} further notes")
    return found


def regions(view: View, head: Header) -> tuple[Region, ...]:
    """Where code was mapped, in the order of discovery; a later region may take the place of an earlier one."""
    found = []
    for index in range(head.regions):
        start, end, offset, _, _, path, _ = REGION.unpack_from(view, REGIONS + index * REGION.size)
        found.append(Region(start, end, offset, _text(path)))
    return tuple(found)


class Slot(NamedTuple):
    """A thread as the ledger lists it."""

    tid: int
    state: int
    pid: int
    how: str
    name: str
    executing: str


def threads(view: View, head: Header) -> list[Slot]:
    """The threads, in the order of their slots."""
    found = []
    for index in range(head.threads):
        tid, state, pid, how, name, executing = THREAD.unpack_from(view, THREADS + THREAD.size * index)
        found.append(Slot(tid, state, pid, HOW[how], _text(name), _text(executing)))
    return found


class Blocks:
    """The blocks of a ledger by index, as events."""

    def __init__(self, view: View) -> None:
        self._view = view

    def event(self, index: int, runs: int, scope: Scope, lanes: Callable[[int], int]) -> Block:
        """Block `index`, run `runs` times in `scope`; `lanes` reads the lane counters of the same thread and scope."""
        fields = BLOCK.unpack_from(self._view, BLOCKS + BLOCK.size * index)
        address, at, length, masked, first = fields[:5]
        code = bytes(self._view[CODE + at : CODE + at + length])
        active: tuple[tuple[int, int], ...] = ()
        if masked:
            active = tuple((offset, lanes(first + i)) for i, offset in enumerate(masked_offsets(code)))
        return Block(scope, "x86_64", address, code, runs, active)


def _lost(path: str) -> str:
    return f"{path}, which it became, was not counted (a static, setuid or foreign program)"


def images(view: View, areas: Sequence[View], *, ended: bool, followed: Container[int]) -> list[ProcessImage]:
    """The process image of a ledger, and one for each vfork child that lived in its memory.

    `ended` tells whether its process is gone; `followed` are the processes that have a ledger of what they became by exec.
    """
    head = header(view)
    reasons = notes(view, head)
    if head.state == EXECUTING and head.pid not in followed:
        reasons.append(_lost(head.executing))
    if head.overflow:
        reasons.append(f"{head.overflow} blocks, threads, regions or children found no room in the counting tables")
    if head.unsaved:
        reasons.append(f"{head.unsaved} pages of counts could not be kept: the disk or memory for them was full")
    if head.lost_children:
        reasons.append(f"{head.lost_children} child processes were not counted")
    if head.state == RUNNING:
        reasons.append("it did not end by itself (a signal, or a crash)" if ended else "it was still running")
    slots = threads(view, head)
    table = Blocks(view)
    found = []
    mapped = regions(view, head)
    for pid in dict.fromkeys((head.pid, *(slot.pid for slot in slots))):
        own = [(slot, area) for slot, area in zip(slots, areas, strict=True) if slot.pid == pid]
        events = []
        for slot, area in own:
            lanes = area[8 * MAX_BLOCKS : 8 * (MAX_BLOCKS + head.lanes)].cast("Q")
            scope = Scope(thread=str(slot.tid))
            runs = area[: 8 * head.blocks].cast("Q")
            events += [table.event(i, n, scope, lanes.__getitem__) for i, n in enumerate(runs) if n]
        named = tuple(Thread(slot.tid, slot.name, slot.state != THREAD_LEFT) for slot, _ in own)
        if pid == head.pid:
            found.append(
                ProcessImage(
                    pid, head.parent, head.command, head.how, not reasons, tuple(reasons), named, tuple(events), mapped
                )
            )
        else:
            lost = tuple(_lost(slot.executing) for slot, _ in own if slot.state == THREAD_EXEC and pid not in followed)
            found.append(
                ProcessImage(pid, head.pid, head.command, "vfork", not lost, lost, named, tuple(events), mapped)
            )
    return found
