"""`flopwatch train` as it is typed: results, resumed runs, what is refused and how."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("torchvision", reason="needs torchvision")

from flopwatch import cli  # noqa: E402
from flopwatch.training import networks  # noqa: E402
from tests.training_things import Tiny, folder  # noqa: E402

pytestmark = pytest.mark.torch

CLASSES, TRAIN, VAL = 3, 10, 4
EASY = ("--recipe", "few", "--batch", "8", "--image-size", "12", "--workers", "0", "--device", "cpu", "--no-probe")
# The same program with a network of a few hundred weights in place of the named one, and time to be killed in mid epoch.
CHILD = """
import sys, time
from flopwatch import cli
from flopwatch.training import networks
from tests.training_things import Tiny
networks.build = lambda name, head: Tiny(head)
if sys.argv[1] == "slow":
    from flopwatch.training.loop import Loop
    moved = Loop.moved
    Loop.moved = lambda self, pictures, labels: (time.sleep(0.2), moved(self, pictures, labels))[1]
cli.main(sys.argv[2:])
"""


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(folder(tmp_path_factory.mktemp("pictures"), TRAIN, VAL, CLASSES))


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every named network is a tiny one."""
    monkeypatch.setattr(networks, "build", lambda name, head: Tiny(head))
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def run(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> Any:
    assert cli.run(["train", *arguments]) == code, capsys.readouterr().err
    shown = capsys.readouterr()
    return json.loads(shown.out) if "--json" in arguments else shown.out if code == 0 else shown.err


def test_json_holds_what_machines_rely_on(capsys: pytest.CaptureFixture[str], pictures: str) -> None:
    result = run(capsys, "-a", "resnet18", "--data", pictures, *EASY, "--epochs", "2", "--json")
    assert (result["schema"], result["arch"], result["complete"], result["head"]) == (1, "resnet18", True, CLASSES)
    assert [row["epoch"] for row in result["rows"]] == [1, 2]
    for row in result["rows"]:
        assert (row["n"], row["train_n"]) == (CLASSES * VAL, CLASSES * TRAIN)
        assert row["top5"] is None  # three classes
        assert row["top1_low"] <= row["top1"] <= row["top1_high"]
        assert row["images_per_second"]["end_to_end"] > 0
        assert row["images_per_second"]["compute"] is row["images_per_second"]["loader"] is None
        assert row["seconds"] > 0
        assert row["mfu"] is None
    assert result["rows"][1]["updates"] == 2 * 4  # 30 pictures in batches of 8
    assert result["chance"] == {"top1": VAL / (CLASSES * VAL), "top5": None}
    assert result["precision"]["name"] == "fp32-ieee"
    assert result["precision"]["complaints"] == []
    assert result["precision"]["operations"]
    assert result["diverged"] is None


def test_the_work_of_an_image_is_that_of_the_formulas(capsys: pytest.CaptureFixture[str], pictures: str) -> None:
    result = run(capsys, "--data", pictures, *EASY, "--epochs", "1", "--json")
    side = 12 - 2
    forward = 4 * 3 * 3 * 3 * side**2 + 4 * CLASSES
    # Backward: both products again for the weights, and those of the head for its input; the picture needs no gradient.
    assert result["work"]["mac_per_image"] == forward + forward + 4 * CLASSES


def test_the_table_has_a_line_for_each_epoch_in_80_columns(capsys: pytest.CaptureFixture[str], pictures: str) -> None:
    text = run(capsys, "--data", pictures, *EASY, "--epochs", "2")
    lines = text.splitlines()
    assert lines[0].endswith("fp32-ieee, batch 8, 12 px, cpu")
    assert lines[1].split()[:5] == ["epoch", "top-1", "±95%", "top-5", "loss"]
    assert [line.split()[0] for line in lines[2:4]] == ["1", "2"]
    assert all(len(line) <= 80 for line in lines[1:4])
    assert "guessing gives top-1 33.33%; no top-5 with fewer than 5 classes" in text


def test_rates_are_measured_by_themselves(
    capsys: pytest.CaptureFixture[str], pictures: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from flopwatch.training import probes

    monkeypatch.setattr(probes.compute, "__defaults__", (0.05,))
    monkeypatch.setattr(probes.loader, "__defaults__", (0.05,))
    asked = [each for each in EASY if each != "--no-probe"]
    plain = run(capsys, "--data", pictures, *EASY, "--epochs", "1", "--json")
    probed = run(capsys, "--data", pictures, *asked, "--epochs", "1", "--json")
    rates = probed["rows"][0]["images_per_second"]
    assert rates["compute"] > 0 and rates["loader"] > 0
    # Nothing of the run is changed by it.
    for key in ("top1", "loss", "train_loss"):
        assert probed["rows"][0][key] == plain["rows"][0][key]


def test_a_run_leaves_its_files(capsys: pytest.CaptureFixture[str], pictures: str, tmp_path: Path) -> None:
    out = tmp_path / "run"
    shown = run(capsys, "--data", pictures, *EASY, "--epochs", "2", "--output", str(out), "--json")
    assert json.loads((out / "run.json").read_text()) == shown
    with open(out / "epochs.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["top1"]) for row in rows] == [row["top1"] for row in shown["rows"]]
    assert rows[0]["top5"] == ""
    assert {"checkpoint.pt", "best.pt"} <= {each.name for each in out.iterdir()}
    error = run(capsys, "--data", pictures, *EASY, "--output", str(out), code=2)
    assert f"Go on with --resume {out}" in error
    # The best weights can be evaluated, and know what the best row knew.
    found = run(capsys, "--data", pictures, *EASY, "--weights", str(out / "best.pt"), "--evaluate", "--json")
    assert found["rows"][0]["top1"] == shown["best"]["top1"]
    assert found["rows"][0]["epoch"] == 0


def weights_of(folder: Path) -> dict[str, torch.Tensor]:
    """Weights, buffers and all that the optimizer remembers."""
    state = torch.load(folder / "checkpoint.pt", weights_only=True)
    states = state["running"]["optimizer"]["state"]
    momenta = {f"{key} {name}": value for key, each in states.items() for name, value in each.items()}
    assert momenta
    return {**state["running"]["model"], **momenta}


def assert_the_same(one: Path, other: Path) -> None:
    ours, theirs = weights_of(one), weights_of(other)
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
    keys = ("epoch", "top1", "n", "loss", "train_loss", "train_top1", "train_n", "lr", "updates")
    first, second = (json.loads((each / "run.json").read_text())["rows"] for each in (one, other))
    assert [[row[key] for key in keys] for row in first] == [[row[key] for key in keys] for row in second]


@pytest.mark.parametrize("precision", ["fp32-ieee", "O1", "O2", "O3", "bf16-master"])
def test_more_epochs_can_be_added_later(
    capsys: pytest.CaptureFixture[str], pictures: str, tmp_path: Path, precision: str
) -> None:
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    steady = ("--data", pictures, *EASY, "--recipe", "imagenet-example", "--precision", precision)
    run(capsys, *steady, "--epochs", "3", "--output", str(whole))
    run(capsys, *steady, "--epochs", "1", "--output", str(parts))
    text = run(capsys, "--resume", str(parts), "--epochs", "3", "--device", "cpu")
    assert "epochs 3 from the command line replaces 1 of the checkpoint" in text
    assert_the_same(whole, parts)
    again = run(capsys, "--resume", str(parts), "--device", "cpu")
    assert "all 3 epochs were done already" in again
    assert [line.split()[0] for line in again.splitlines()[2:5]] == ["1", "2", "3"]


def test_an_interrupted_run_says_how_to_go_on(
    capsys: pytest.CaptureFixture[str], pictures: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from flopwatch.training.loop import Loop

    out = tmp_path / "run"
    next_epoch = Loop.next_epoch

    def interrupted(loop: Loop) -> None:
        if loop.position.epoch == 1:
            raise KeyboardInterrupt
        next_epoch(loop)

    monkeypatch.setattr(Loop, "next_epoch", interrupted)
    error = run(capsys, "--data", pictures, *EASY, "--epochs", "3", "--output", str(out), code=130)
    assert f"go on with: flopwatch train --resume {out}" in error
    assert "nothing was saved" in run(capsys, "--data", pictures, *EASY, "--epochs", "3", code=130)


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["0", "1"])
def test_a_run_that_was_killed_in_mid_epoch_goes_on_bit_for_bit(
    capsys: pytest.CaptureFixture[str], pictures: str, tmp_path: Path, workers: str
) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    asked = ["--data", pictures, *EASY, "--workers", workers, "--epochs", "3", "--accumulate", "2"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(["src", ".", *sys.path])}

    def child(pace: str, *arguments: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, "-c", CHILD, pace, "train", *arguments], env=environment)

    assert child("fast", *asked, "--output", str(whole)).wait(300) == 0
    victim = child("slow", *asked, "--output", str(killed), "--save-steps", "2")
    for _ in range(3000):
        time.sleep(0.05)
        if (killed / "checkpoint.pt").exists():
            state = torch.load(killed / "checkpoint.pt", weights_only=True)
            if state["position"]["epoch"] >= 1 and state["position"]["batch"]:
                break
    victim.send_signal(signal.SIGKILL)
    assert victim.wait(60) == -signal.SIGKILL
    position = torch.load(killed / "checkpoint.pt", weights_only=True)["position"]
    assert position["batch"] == 2, "killed in mid epoch"
    assert child("fast", "--resume", str(killed), "--device", "cpu", "--no-probe").wait(300) == 0
    assert_the_same(whole, killed)


def test_what_a_resumed_run_must_keep(capsys: pytest.CaptureFixture[str], pictures: str, tmp_path: Path) -> None:
    out = tmp_path / "run"
    run(capsys, "-a", "resnet18", "--data", pictures, *EASY, "--epochs", "1", "--output", str(out))
    error = run(capsys, "-a", "resnet34", "--resume", str(out), code=2)
    assert "is of a run with network resnet18, not resnet34" in error
    other = folder(tmp_path / "other", TRAIN + 1, VAL, CLASSES)
    (out / "checkpoint.pt").write_bytes((out / "checkpoint.pt").read_bytes()[:2000])
    assert "damaged" in run(capsys, "--resume", str(out), code=2)
    assert "no checkpoint" in run(capsys, "--resume", str(other), code=2)


def test_divergence_is_a_result_with_its_step(capsys: pytest.CaptureFixture[str], pictures: str) -> None:
    result = run(
        capsys, "--data", pictures, *EASY, "--recipe", "imagenet-example", "--lr", "1e38", "--epochs", "3", "--json"
    )
    assert result["complete"]
    assert result["diverged"]["reason"] == "diverged"
    assert result["diverged"]["epoch"] == 1
    assert 1 < result["diverged"]["step"] <= 4
    assert result["rows"][-1]["top1"] is None


def test_a_wider_head_is_a_switch(capsys: pytest.CaptureFixture[str], pictures: str) -> None:
    result = run(capsys, "--data", pictures, *EASY, "--epochs", "1", "--classes", "1000", "--json")
    assert result["head"] == 1000
    assert result["rows"][0]["top5"] is not None
    assert any("of which 3 have pictures" in note for note in result["notes"])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("-a", "resnet81"), "Did you mean resnet18"),
        (("--batch", "0"), "0 is no number for batch"),
        (("--epochs", "0"), "0 is no number for epochs"),
        (("--lr", "-1"), "no learning rate"),
        (("--recipe", "fats"), "Did you mean fast"),
        (("--classes", "2"), "cannot tell the 3 classes"),
        (("--precision", "fp8"), "fp8"),
        (("--device", "abacus"), "no device 'abacus'"),
        (("--weights", "nowhere.pt"), "no file of weights"),
        (("--weights", "a", "--pretrained"), "only one"),
        (("--batch", "29"), "The last batch of an epoch has one picture"),
        (("--image-size", "2"), "It cannot be computed"),
    ],
)
def test_what_makes_no_sense_is_a_sentence(
    capsys: pytest.CaptureFixture[str],
    pictures: str,
    options: tuple[str, ...],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if options == ("--batch", "29"):
        # A network whose normalisation has one number for each channel of one picture.
        norm = torch.nn.BatchNorm1d(3)
        monkeypatch.setattr(
            networks,
            "build",
            lambda name, head: torch.nn.Sequential(torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), norm),
        )
    assert said in run(capsys, "--data", pictures, *EASY, *options, code=2)


def test_data_that_is_not_there_is_a_sentence(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert "nothing to train on" in run(capsys, code=2)
    assert "no folder" in run(capsys, "--data", str(tmp_path / "none"), code=2)
    (folder(tmp_path / "x") / "val").rename(tmp_path / "elsewhere")
    assert "val" in run(capsys, "--data", str(tmp_path / "x"), *EASY, code=2)


def test_the_doctor_of_data_sets(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    root = folder(tmp_path / "x")
    bad = root / "train" / "class0" / "0.png"
    bad.write_bytes(bad.read_bytes()[:40])
    assert cli.run(["train", "--check-data", str(root)]) == 4
    assert "0.png" in capsys.readouterr().out
    assert "0.png" in run(capsys, "--data", str(root), *EASY, "--epochs", "1", code=2)
    result = run(capsys, "--data", str(root), *EASY, "--epochs", "1", "--policy", "skip", "--json")
    assert result["rows"][0]["train_n"] == CLASSES * TRAIN - 1
    assert "0.png" in run(capsys, "--data", str(root), *EASY, "--policy", "fail", code=2)


@pytest.mark.slow
def test_a_made_imagenette_is_trained_on(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()  # the real network
    asked = (
        "--data",
        "made:imagenette",
        "--data-scale",
        "0.02",
        "--image-size",
        "64",
        "--epochs",
        "2",
        "--batch",
        "32",
    )
    result = run(capsys, "-a", "resnet18", *asked, "--cache", str(tmp_path), "--json")
    for row in result["rows"]:
        assert row["n"] == 79
        assert all(row["images_per_second"][kind] > 0 for kind in ("end_to_end", "compute", "loader"))
        assert row["top5"] is not None
