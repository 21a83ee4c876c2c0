"""`flopwatch model` as it is typed: formats, files, what is refused and how."""

from __future__ import annotations

import csv
import json

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("torchvision", reason="needs torchvision")

from flopwatch import cli  # noqa: E402
from flopwatch.record import decode  # noqa: E402

pytestmark = pytest.mark.torch

FILE = """
import torch
from torch import nn

@torch.library.custom_op("mine::mystery", mutates_args=())
def mystery(x: torch.Tensor) -> torch.Tensor:
    return x + 1

@mystery.register_fake
def _(x):
    return torch.empty_like(x)

class Strange(nn.Module):
    def __init__(self):
        super().__init__()
        self.known = nn.Linear(3, 5, bias=False)

    def forward(self, x):
        return torch.ops.mine.mystery(self.known(x))

class Nested(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Strange()

    def forward(self, x):
        return self.inner(x)

class Named(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 5, bias=False)

    def forward(self, *, first, rest):
        return {"out": self.layer(first) + self.layer(rest["second"])}

class OnGpu(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 5)

    def forward(self, x):
        return self.layer(x.cuda())

def strange():
    return Nested(), torch.ones(2, 3)

def named():
    return Named(), {"first": torch.ones(2, 3), "rest": {"second": torch.ones(2, 3)}}

def on_gpu():
    return OnGpu(), torch.ones(2, 3)
"""
ROWS, INNER, COLUMNS = 2, 3, 5
RESNET18 = 1_814_073_344


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "strange_net.py"
    path.write_text(FILE)
    return str(path)


@pytest.fixture
def run(capsys):
    def run(*words: str) -> tuple[int, str, str]:
        code = cli.run(["model", *words])
        out, err = capsys.readouterr()
        return code, out, err

    return run


def test_an_estimate_needs_no_option(run):
    code, out, err = run("resnet18")
    assert (code, err) == (0, "")
    assert out.startswith(f"resnet18: {RESNET18:,} MAC, ")
    assert "unknown: none" in out, "the coverage is always said"


def test_json(run):
    code, out, _ = run("resnet18", "--batch", "2", "--json")
    document = json.loads(out)
    total = document["total"]
    assert (code, document["model"], document["counter"]) == (0, "resnet18", "estimate")
    assert (total["mac"], total["params"], total["measured_flop"]) == (2 * RESNET18, 11_689_512, None)
    conv1 = next(row for row in document["rows"] if row["name"] == "conv1")
    assert conv1["mac"] == 2 * 112 * 112 * 64 * 3 * 7 * 7
    assert (document["coverage"], document["unknown"]) == (1.0, [])


def test_files_by_their_suffix(run, tmp_path):
    json_file, csv_file, markdown_file = (str(tmp_path / f"net.{suffix}") for suffix in ("json", "csv", "md"))
    assert run("resnet18", "-o", json_file)[:2] == (0, "")
    assert run("resnet18", "--depth", "1", "-o", csv_file)[0] == 0
    assert run("resnet18", "--depth", "1", "-o", markdown_file)[0] == 0
    with open(json_file, "rb") as read:
        assert decode(read.read()).mac == RESNET18
    with open(csv_file, newline="") as read:
        rows = list(csv.DictReader(read))
    assert sum(int(row["MAC"]) for row in rows) == RESNET18
    assert "| layer1 | Sequential | 147,968 | 462,422,016 |" in (tmp_path / "net.md").read_text()


def test_a_saved_estimate_can_be_shown_again(run, tmp_path, capsys):
    saved = str(tmp_path / "net.json")
    run("resnet18", "-o", saved)
    assert cli.run(["show", saved, "--by", "op"]) == 0
    assert "aten::conv2d" in capsys.readouterr().out


def test_an_unknown_operator_is_said_and_strict_fails(run, file):
    code, out, _ = run(f"{file}:strange")
    assert code == 0
    assert "1 UNKNOWN" in out and "mine::mystery (1 times, in inner)" in out.replace("\n", " ")
    assert f"{ROWS * INNER * COLUMNS} MAC" in out
    code, out, err = run(f"{file}:strange", "--strict")
    assert code == 3 and "mine::mystery" in err and "MAC" in out


def test_named_arguments_of_any_shape(run, file):
    code, out, _ = run(f"{file}:named", "--json", "--strict")
    assert code == 0
    assert json.loads(out)["total"]["mac"] == 2 * ROWS * INNER * COLUMNS


@pytest.mark.skipif(torch.cuda.is_available(), reason="here the model would run")
def test_a_model_that_needs_a_gpu(run, file):
    code, _, err = run(f"{file}:on_gpu")
    assert code == 2 and "needs CUDA" in err and "src/flopwatch" not in err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("resnet18", "--input", "1x4x224x224"), "to have 3 channels, but got 4 channels"),
        (("resnet18", "--tree", "--by", "op"), "A tree shows layers"),
        (("resnet18", "--json", "--csv"), "only one"),
        (("resnet18", "--dim", "batch"), "--dim NAME=N"),
        (("resnet18", "--sequence", "8"), "config.json"),
        (("missing.onnx",), "no file"),
        (("missing.prototxt",), "no file"),
        (("resnet18", "-o", "/nowhere/net.json"), "does not exist"),
    ],
)
def test_bad_input_is_a_sentence(run, words, said):
    code, out, err = run(*words)
    assert (code, out) == (2, "")
    assert said in err and err.startswith("flopwatch:") and "Traceback" not in err
