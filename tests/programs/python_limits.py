"""RecursionError, deep generators, MemoryError, garbage collection with cycles, weak references, tracing and profiling hooks."""
# needs:

import gc
import sys
import weakref

from show import show


def deep(level: int) -> int:
    return deep(level + 1)


try:
    deep(0)
except RecursionError as error:
    show("recursion", str(error)[:32])
try:
    bytearray(1 << 60)
except MemoryError as error:
    show("memory", error)


class Node:
    pass


node = Node()
node.itself = node  # type: ignore[attr-defined]
alive = weakref.ref(node)
del node
gc.collect()
show("collected", alive() is None)
events: list[str] = []
sys.settrace(lambda frame, event, argument: events.append(f"{event} {frame.f_code.co_name}"))
sum(map(abs, (-1.5, 2.5)))
(lambda: 0)()
sys.settrace(None)
show("traced", events)


def flatten(tree):  # type: ignore[no-untyped-def]
    if isinstance(tree, list):
        for each in tree:
            yield from flatten(each)
    else:
        yield tree


nested = 1.0
for i in range(300):
    nested = [nested, i]  # type: ignore[assignment]
show("generators", sum(flatten(nested)))
