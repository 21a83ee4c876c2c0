"""Two ranks at O2 stay one model: the same masters, the same skipped steps, whoever's gradient overflowed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytestmark = pytest.mark.torch

RANK = """
import json, sys
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from flopwatch.training.precision import Running, census, find

rank, place = int(sys.argv[1]), sys.argv[2]
torch.distributed.init_process_group("gloo", init_method=f"file://{place}", rank=rank, world_size=2)
labels = torch.arange(6) % 3


def backward(run, worse):
    run.backward(nn.functional.cross_entropy(run.forward(torch.randn(6, 3, 6, 6)), labels) * worse)


for accumulate in (False, True):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(64, 3))
    run = Running(model, lambda parameters: torch.optim.SGD(parameters, 0.1, momentum=0.9), find("O2"))
    run.model = DistributedDataParallel(run.module)
    torch.manual_seed(1 + rank)
    complaints = census(run, (torch.randn(6, 3, 6, 6), labels)).complaints
    taken = []
    for step in range(4):
        run.zero()
        if accumulate:
            with run.model.no_sync():
                backward(run, 1e-3)
        backward(run, float("inf") if (rank, step) == (1, 2) else 1e-3)
        taken.append(run.step())
    sums = [master.double().sum().item() for master in run.masters.state_dict().values()]
    print(json.dumps([taken, sums, run.scaler.scale, complaints]))
torch.distributed.destroy_process_group()
"""


@pytest.mark.slow
def test_two_ranks_are_one_model(tmp_path: Path) -> None:
    if not torch.distributed.is_available():
        pytest.skip("PyTorch was built without torch.distributed")
    command = [sys.executable, "-c", RANK]
    ranks = [
        subprocess.Popen([*command, str(rank), str(tmp_path / "store")], stdout=subprocess.PIPE, text=True)
        for rank in range(2)
    ]
    first, second = (rank.communicate(timeout=240)[0].splitlines() for rank in ranks)
    assert first == second
    assert len(first) == 2  # plain, and with accumulated gradients under no_sync
    for line in first:
        taken, _, scale, complaints = json.loads(line)
        assert taken == [True, True, False, True]
        assert scale == 2.0**15
        assert complaints == []
