"""From a name to a record and its table: each operation in one row, whatever the axis."""

from __future__ import annotations

import dataclasses
import io
import json

import msgspec
import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("torchvision", reason="needs torchvision")

from flopwatch import cli, model_views, models, reports  # noqa: E402
from flopwatch.errors import UsageError  # noqa: E402
from flopwatch.frameworks import OUTSIDE, ROOT  # noqa: E402
from flopwatch.record import decode  # noqa: E402
from flopwatch.subjects.model import ModelRaisedError, Request  # noqa: E402
from tests.fake_engine import FLOP, FakeEngine  # noqa: E402

pytestmark = pytest.mark.torch

FILE = """
import torch
from torch import nn
from tests.fake_engine import work

class Costly(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, amount):
        ctx.amount = amount
        work(amount)
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        work(10 * ctx.amount)
        return gradient * 2, None

class Layer(nn.Module):
    def __init__(self, amount):
        super().__init__()
        self.amount = amount
        self.weight = nn.Parameter(torch.ones(3))

    def forward(self, x):
        return Costly.apply(x * self.weight, self.amount)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = Layer(1)
        self.body = nn.Sequential(Layer(2), nn.Sequential(Layer(4), nn.Identity()))
        self.calls = 0

    def forward(self, x):
        work(8)
        return self.body(self.stem(x))

def net():
    return Net(), torch.ones(1, 3)

class Failing(nn.Module):
    def forward(self, x):
        return self.helper(x)

    def helper(self, x):
        raise ValueError("too narrow")

def failing():
    return nn.Sequential(Failing()), torch.ones(1, 3)
"""


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.path", list(__import__("sys").path))
    path = tmp_path / "net.py"
    path.write_text(FILE)
    return str(path)


@pytest.fixture
def engine(monkeypatch):
    monkeypatch.setattr("flopwatch.labelled.engine_of", lambda counter, needs: ("instrumented", FakeEngine()))


LAYERS = {ROOT: 8, "stem": 1, "body.0": 2, "body.1.0": 4}


def rows(document):
    return {row["name"]: row["measured_flop"] for row in document["rows"] if row["measured_flop"]}


def test_an_inference_by_layer(file):
    measured = models.measure_model(Request(f"{file}:net"), engine=FakeEngine())
    document = model_views.document(measured)
    assert rows(document) == {name: FLOP * amount for name, amount in LAYERS.items()}
    assert [row["name"] for row in document["rows"]] == [
        ROOT, "stem", "body", "body.0", "body.1", "body.1.0", "body.1.1",
    ]  # fmt: skip
    total = document["total"]
    assert (total["mac"], total["flop"]) == (None, None), "nothing was estimated"
    assert (total["params"], total["measured_flop"]) == (3 * 3, FLOP * (8 + 1 + 2 + 4))
    stem = document["rows"][1]
    assert (stem["name"], stem["kind"], stem["params"], stem["measured_flop"]) == ("stem", "Layer", 3, FLOP * 1)
    assert stem["mac"] is None and stem["ratio"] is None


def test_a_training_step_by_layer_function_and_op(file):
    measured = models.measure_model(Request(f"{file}:net"), train=True, engine=FakeEngine())
    whole = FLOP * (8 + 11 * (1 + 2 + 4))
    by_layer = model_views.document(measured)
    assert rows(by_layer) == {ROOT: FLOP * 8, "stem": FLOP * 11, "body.0": FLOP * 22, "body.1.0": FLOP * 44}
    assert by_layer["rows"][1]["measured_stages"] == {"forward": FLOP, "backward": FLOP * 10}
    assert rows(model_views.document(measured, "function")) == {"forward": FLOP * 15, "backward": FLOP * 70}
    by_op = model_views.document(measured, "op")
    assert rows(by_op) == {model_views.NO_OP: FLOP * 8, "Costly": FLOP * 7, "CostlyBackward": FLOP * 70}
    assert all(sum(rows(each).values()) == whole for each in (by_layer, by_op))


def test_depth_sums_the_layers_below(file):
    measured = models.measure_model(Request(f"{file}:net"), engine=FakeEngine())
    document = model_views.document(measured, depth=1)
    assert rows(document) == {ROOT: FLOP * 8, "stem": FLOP * 1, "body": FLOP * 6}
    assert {row["name"]: row["params"] for row in document["rows"]} == {ROOT: 0, "stem": 3, "body": 6}
    assert rows(model_views.document(measured, depth=0)) == {ROOT: FLOP * 15}


def test_the_table_fits_eighty_columns(file):
    measured = models.measure_model(Request(f"{file}:net"), train=True, engine=FakeEngine())
    for by in model_views.AXES:
        text = io.StringIO()
        reports.find("table").render(model_views.sheet(measured, by, sort="flop"), text)
        assert max(map(len, text.getvalue().splitlines()[2:6])) <= 80
    assert "rows sum to the total: 170 FLOP measured" in text.getvalue()


def test_integer_work_is_shown(file):
    class Integers(FakeEngine):
        def read(self):
            # vpdpbusd zmm0, zmm1, zmm2: 64 products of bytes
            return [dataclasses.replace(block, code=bytes.fromhex("62f2754850c2")) for block in self.blocks]

    measured = models.measure_model(Request(f"{file}:net"), engine=Integers())
    sheet = model_views.sheet(measured)
    per_unit = 2 * 64
    (place,) = (number for number, column in enumerate(sheet.columns) if column.unit == "OP")
    assert {row[0]: row[place] for row in sheet.rows if row[place]} == {
        name: per_unit * amount for name, amount in LAYERS.items()
    }
    assert f"0 FLOP measured, {per_unit * 15:,} integer OP measured" in sheet.notes[0]


def test_a_model_that_raises_while_it_runs(file):
    with pytest.raises(ModelRaisedError) as caught:
        models.measure_model(Request(f"{file}:failing"), engine=FakeEngine())
    assert "ValueError: too narrow" in str(caught.value)
    assert "src/flopwatch/" not in str(caught.value)


def test_a_named_model_that_cannot_take_its_input_is_a_sentence():
    with pytest.raises(UsageError) as caught:
        models.measure_model(Request("resnet18", shapes=("1x5x32x32",)), engine=FakeEngine())
    assert "resnet18 cannot run on 1x5x32x32" in str(caught.value)
    assert "to have 3 channels, but got 5 channels" in str(caught.value)
    assert "Traceback" not in str(caught.value)


class TestCommandLine:
    def test_a_table(self, file, engine, capsys):
        assert cli.run(["model", f"{file}:net", "--measure"]) == 0
        out = capsys.readouterr().out
        assert "30 FLOP measured" in out and "0 MAC" in out and "body.1.0" in out and OUTSIDE not in out

    def test_json_that_is_a_record_too(self, file, engine, capsys, tmp_path):
        saved = tmp_path / "net.json"
        assert cli.run(["model", f"{file}:net", "--measure", "--json"]) == 0
        document = json.loads(capsys.readouterr().out)
        assert document["model"] == f"{file}:net" and document["schema"] >= 1 and document["coverage"] == 1.0
        assert cli.run(["model", f"{file}:net", "--measure", "-o", str(saved)]) == 0
        record = decode(saved.read_bytes())
        assert record.subject == "model" and sum(record.flop().values()) == document["total"]["measured_flop"]
        assert msgspec.json.decode(saved.read_bytes())["rows"] == document["rows"]
        assert cli.run(["show", str(saved), "--by", "layer"]) == 0
        assert "body.1.0" in capsys.readouterr().out

    def test_a_typo(self, engine, capsys):
        assert cli.run(["model", "resnet81", "--measure"]) == 2
        assert "Did you mean resnet18" in capsys.readouterr().err

    def test_a_factory_that_raises(self, file, engine, capsys):
        assert cli.run(["model", f"{file}:failing", "--measure"]) == 1
        err = capsys.readouterr().err
        assert "too narrow" in err and "src/flopwatch/" not in err
