"""How the benchmark judges what other counters answer."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parent.parent.parent / "benchmarks"
sys.path.append(str(BENCHMARKS))

from peers import attention_cases, op_cases, tables  # noqa: E402
from peers.answers import Answer, Count, verdict  # noqa: E402
from peers.caffe_nets import NETS  # noqa: E402
from peers.cases import CASES  # noqa: E402
from peers.environments import PEERS  # noqa: E402
from peers.running import Kept  # noqa: E402
from peers.worker import NOT_FOR_THIS  # noqa: E402

RIGHT, INSIDE, OTHERS = 1000, 900, 50


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (Count(1000, "MAC"), "right"),
        (Count(2000, "FLOP"), "right"),
        (Count(900, "MAC"), "right"),  # without padding, as some do by design
        (Count(1100, "MAC"), "right+"),  # all other arithmetic added, at twice our price
        (Count(1101, "MAC"), "silent"),
        (Count(999, "MAC"), "silent"),
        (Count(0, "MAC", ("aten::dot",)), "warned"),
        (None, "crashed"),
    ],
)
def test_a_verdict(count, expected):
    assert verdict(Answer("conv2d", count), RIGHT, INSIDE, OTHERS) == expected


def test_nothing_may_be_added_where_a_model_does_nothing_else():
    assert verdict(Answer("torch.mm", Count(61, "MAC")), 60, None, 0) == "silent"


def test_every_counter_has_an_adapter_and_every_adapter_a_counter():
    files = {path.stem for path in (BENCHMARKS / "peers" / "adapters").glob("*.py") if not path.stem.startswith("_")}
    assert files == set(PEERS)


def test_every_case_without_pytorch_is_a_network_of_caffe():
    assert {name for name, case in CASES.items() if case.build is None} == set(NETS)


def test_figures_of_small_models_come_of_their_sizes():
    assert (attention_cases.LLAMA, attention_cases.MIXTRAL, attention_cases.GPT2) == (657_408, 1_054_720, 591_872)
    assert op_cases.CONV == 13_824


def test_a_table_has_what_was_asked_and_what_was_found():
    answers = {
        "flopwatch": {"torch.mm": Answer("torch.mm", Count(60, "MAC"), seconds=0.5, version="1")},
        "thop": {"torch.mm": Answer("torch.mm", Count(0, "MAC"), seconds=0.25, version="2")},
        "jax": {"torch.mm": Answer("torch.mm", error=NOT_FOR_THIS)},
    }
    assert tables.summary(answers, ["torch.mm"], {}).splitlines()[2:] == [
        "| flopwatch | 1 | 1 | 1 | 0 | 0 | 0 | 0 | 0.5 |",
        "| thop | 2 | 1 | 0 | 0 | 0 | 1 | 0 | 0.2 |",
        "| JAX cost analysis |  | 0 | 0 | 0 | 0 | 0 | 0 | 0.0 |",
    ]
    assert tables.by_case(answers, ["torch.mm"], {}).splitlines()[-1] == "| torch.mm | 60 | ok | **silent** 0 | – |"
    assert tables.exit_code(answers, ["torch.mm"], {}) == 0
    assert tables.exit_code({"flopwatch": answers["thop"]}, ["torch.mm"], {}) == 1


def test_answers_are_kept(tmp_path):
    answer = Answer("torch.mm", Count(60, "MAC", ("a", "b"), 3), seconds=0.5, version="1")
    Kept(tmp_path, "thop").keep(answer)
    assert Kept(tmp_path, "thop").answers == {"torch.mm": answer}
