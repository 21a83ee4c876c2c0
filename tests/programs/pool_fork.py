"""A multiprocessing pool of forked processes, with an exception that travels back."""
# needs:

import math
import multiprocessing

from show import show


def task(number: int) -> float:
    if number == 13:
        raise ValueError("thirteen")
    return sum(math.sin(i * number) for i in range(2000))


if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(3) as pool:
        show("map", pool.map(task, range(12)))
        try:
            pool.apply(task, (13,))
        except ValueError as error:
            show("raised", error)
        show("unordered", sorted(pool.imap_unordered(task, range(14, 30), chunksize=3)))
