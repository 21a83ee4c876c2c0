"""Events that the kernel counts itself, without a PMU."""

from __future__ import annotations

# enum perf_sw_ids, under the names that `perf list` has for them.
SOFTWARE = {
    "cpu-clock": 0,
    "task-clock": 1,
    "page-faults": 2,
    "context-switches": 3,
    "cpu-migrations": 4,
    "minor-faults": 5,
    "major-faults": 6,
    "alignment-faults": 7,
    "emulation-faults": 8,
}
