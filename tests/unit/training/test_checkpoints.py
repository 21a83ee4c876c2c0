"""Checkpoints: whole or not at all, refused with a sentence, and random numbers that go on."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

from flopwatch.errors import CannotMeasureError, UsageError  # noqa: E402
from flopwatch.training import checkpoints, job, recipes  # noqa: E402

pytestmark = pytest.mark.torch

NO_ROOM = """
import resource, signal, sys
from pathlib import Path
import torch
from flopwatch.errors import CannotMeasureError
from flopwatch.training import checkpoints
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    checkpoints.save({"job": {}, "x": torch.zeros(1_000_000)}, Path(sys.argv[1]))
except CannotMeasureError as error:
    print(error)
"""


def test_a_checkpoint_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.pt"
    checkpoints.save({"job": {"arch": "x"}, "weights": torch.arange(3)}, path)
    state = checkpoints.load(checkpoints.find(str(tmp_path)))
    assert state["weights"].tolist() == [0, 1, 2]
    assert [each.name for each in tmp_path.iterdir()] == ["checkpoint.pt"]


def test_without_room_the_one_before_stays(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.pt"
    checkpoints.save({"job": {}, "x": torch.ones(3)}, path)
    ended = subprocess.run([sys.executable, "-c", NO_ROOM, str(path)], capture_output=True, text=True, timeout=300)
    assert "could not be written" in ended.stdout, ended.stderr
    assert "still there" in ended.stdout
    assert checkpoints.load(path)["x"].tolist() == [1, 1, 1]
    assert [each.name for each in tmp_path.iterdir()] == ["checkpoint.pt"]


def test_a_folder_that_is_gone_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(CannotMeasureError, match="could not be written"):
        checkpoints.save({"job": {}}, tmp_path / "gone" / "checkpoint.pt")


def test_damaged_and_foreign_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.pt"
    checkpoints.save({"job": {}, "x": torch.zeros(1000)}, path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(UsageError, match="damaged or not a checkpoint"):
        checkpoints.load(path)
    path.write_text("no checkpoint")
    with pytest.raises(UsageError, match="damaged or not a checkpoint"):
        checkpoints.load(path)
    torch.save({"weight": torch.zeros(3)}, path)
    with pytest.raises(UsageError, match="not a checkpoint of flopwatch"):
        checkpoints.load(path)
    with pytest.raises(UsageError, match="no checkpoint"):
        checkpoints.find(str(tmp_path / "elsewhere"))


def test_random_numbers_go_on_where_they_were(tmp_path: Path) -> None:
    states = checkpoints.random_states()
    expected = random.random(), torch.rand(3).tolist()
    checkpoints.save({"job": {}, "random": states}, tmp_path / "c.pt")
    checkpoints.restore_random(checkpoints.load(tmp_path / "c.pt")["random"])
    assert (random.random(), torch.rand(3).tolist()) == expected


JOB = job.Job("resnet18", "pictures", recipes.find("fast"))


def test_the_checkpoint_wins_unless_an_option_was_given() -> None:
    assert job.from_json(JOB.as_json()) == JOB
    same, notes = job.resumed(JOB, {"lr": None, "arch": "resnet18", "batch": 64})
    assert (same, notes) == (JOB, ())
    changed, notes = job.resumed(JOB, {"lr": 0.5, "epochs": 9, "data": "moved"})
    assert changed.data == "moved"
    assert (changed.recipe.lr, changed.recipe.epochs) == (0.5, 9)
    assert notes[0] == "lr 0.5 from the command line replaces 0.1 of the checkpoint"


@pytest.mark.parametrize(
    "given", [{"arch": "resnet34"}, {"batch": 32}, {"seed": 1}, {"precision": "O2"}, {"recipe": "small"}]
)
def test_what_was_computed_cannot_be_changed(given: dict[str, object]) -> None:
    with pytest.raises(UsageError, match="The checkpoint is of a run with"):
        job.resumed(JOB, given)
