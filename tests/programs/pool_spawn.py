"""Processes that multiprocessing starts afresh (spawn, forkserver), a queue, a shared array and a manager."""
# needs:

import math
import multiprocessing
from concurrent.futures import ProcessPoolExecutor

from show import show


def task(number: int) -> float:
    return sum(math.sqrt(i * number) for i in range(2000))


def fill(shared, queue) -> None:  # type: ignore[no-untyped-def]
    for i in range(len(shared)):
        shared[i] = math.cos(i)
    queue.put(sum(shared))


if __name__ == "__main__":
    for method in ("spawn", "forkserver"):
        context = multiprocessing.get_context(method)
        with ProcessPoolExecutor(2, mp_context=context) as pool:
            show(method, list(pool.map(task, range(6))))
        shared, queue = context.Array("d", 20), context.Queue()
        process = context.Process(target=fill, args=(shared, queue))
        process.start()
        show("queue", queue.get())
        process.join()
        show("shared", (list(shared), process.exitcode))
