"""The most memory that training took: of the device where it has its own, of this process on a CPU."""

from __future__ import annotations

import contextlib
import resource
import sys
from collections.abc import Iterator
from pathlib import Path

from flopwatch.errors import CannotMeasureError, FlopwatchError, UsageError

_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")

# Words of the allocators of CUDA, HIP, MPS, XPU, of the CPU's, and of cuDNN and MIG, when there is no room.
_NO_ROOM = (
    "out of memory",
    "can't allocate memory",
    "cannot allocate memory",
    "not enough memory",
    "defaultcpuallocator",
    "bad_alloc",
    "out_of_memory",
    "cudnn_status_alloc_failed",
    "cublas_status_alloc_failed",
    "nvml_success == r",
)


def reset(device: str) -> None:
    """Forget the peak so far, where the system lets us."""
    if device.startswith("cuda"):
        import torch

        torch.cuda.reset_peak_memory_stats(device)
    elif device == "cpu":
        with contextlib.suppress(OSError):
            _CLEAR.write_text("5")


def peak(device: str) -> int | None:
    """Bytes at the peak since `reset`: of PyTorch's allocator on a GPU, of this process (without its workers) on a CPU.

    None on devices that do not tell.
    """
    if device.startswith("cuda"):
        import torch

        return int(torch.cuda.max_memory_allocated(device))
    if device != "cpu":
        return None
    with contextlib.suppress(OSError):
        for line in _STATUS.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def is_exhausted(error: BaseException) -> bool:
    """Whether an exception says that memory ran out: by its type, or in the words of one of the backends."""
    if isinstance(error, MemoryError) or type(error).__name__ in ("OutOfMemoryError", "AcceleratorOutOfMemoryError"):
        return True
    return isinstance(error, RuntimeError) and any(words in str(error).lower() for words in _NO_ROOM)


@contextlib.contextmanager
def explained(what: str, *, trial: bool = False) -> Iterator[None]:
    """Turn exceptions of PyTorch into sentences: out of memory anywhere, in a `trial` whatever the network says to its input."""
    try:
        yield
    except FlopwatchError:
        raise
    except (RuntimeError, MemoryError) as error:
        first = str(error).strip().partition("\n")[0]
        if is_exhausted(error):
            raise CannotMeasureError(
                f"Out of memory: {what}.", seen=first, todo="Give a smaller --batch, with --accumulate N if wanted."
            ) from error
        if first.startswith("DataLoader worker") and ("killed" in first or "exited unexpectedly" in first):
            raise CannotMeasureError(
                "A process that loads pictures has ended.",
                seen=first,
                todo="Often memory or shared memory ran out: give fewer --workers or a smaller --batch.",
            ) from error
        if not trial:
            raise
        raise UsageError(f"It cannot be computed: {what}.", seen=f"{type(error).__name__}: {first}") from error
    except (ValueError, AssertionError, TypeError, NotImplementedError, IndexError) as error:
        if not trial:
            raise
        first = str(error).strip().partition("\n")[0]
        raise UsageError(f"It cannot be computed: {what}.", seen=f"{type(error).__name__}: {first}") from error
