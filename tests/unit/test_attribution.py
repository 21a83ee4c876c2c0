from __future__ import annotations

from dataclasses import replace

import pytest

from flopwatch.attribution import AXES, NOWHERE, Row, by, check_sum, fold, fold_processes, merged
from flopwatch.flops.operations import DType, Operation
from flopwatch.flops.tally import Count, Key, Tally
from flopwatch.scope import Scope
from flopwatch.symbols import Place
from tests.fakes import LIBRARY, MASKED_FMA, MULSS_ADDSS, block, image

MUL = Key(Operation.MUL, DType.FP32)
ADD = Key(Operation.ADD, DType.FP32)
FMA = Key(Operation.FMA, DType.FP32, 16, True)


def test_each_instruction_is_counted_in_its_place() -> None:
    folded = fold([block(runs=7)], lambda address: Place("libm.so", hex(address)))
    assert {where.instruction: tally for where, tally in folded.cells.items()} == {
        "mulss xmm": Tally({MUL: Count(7)}),
        "addss xmm": Tally({ADD: Count(7)}),
    }
    assert {(where.library, where.symbol) for where in folded.cells} == {("libm.so", "0x1000")}
    assert folded.vector_instructions == 2 * 7
    assert not folded.unknown


def test_a_name_that_the_counter_gives_holds() -> None:
    folded = fold([block(library="mine", symbol="own")], lambda address: Place("other", "other"))
    assert {(where.library, where.symbol) for where in folded.cells} == {("mine", "own")}


def test_switched_on_lanes_go_to_their_instruction() -> None:
    code = MULSS_ADDSS + MASKED_FMA
    runs, on = 10, 35
    folded = fold([block(code, runs, active=((len(MULSS_ADDSS), on),))])
    assert Tally.total(folded.cells.values())[FMA] == Count(runs, on)


def test_undecodable_bytes_are_unknown_and_never_zero() -> None:
    code = MULSS_ADDSS + bytes.fromhex("060606")
    folded = fold([block(code, 3)])
    assert sum(folded.unknown.values()) == 3
    assert folded.vector_instructions == 3 * 3


def test_a_block_that_never_ran_leaves_no_trace() -> None:
    assert fold([block(runs=0)]).cells == {}


def test_names_of_instructions() -> None:
    code = MULSS_ADDSS + MASKED_FMA + bytes.fromhex("d8c1") + bytes.fromhex("c5fc58c1")
    names = [where.instruction for where in fold([block(code)]).cells]
    assert sorted(names) == ["addss xmm", "fadd st", "mulss xmm", "vaddps ymm", "vfmadd231ps zmm{k}"]


@pytest.mark.parametrize("axis", AXES)
def test_rows_sum_to_the_total_on_every_axis(axis: str) -> None:
    layered = replace(block(runs=5), scope=Scope(thread="2", layer="conv1", op="aten::conv2d", function="main"))
    folded = fold_processes([image(block(runs=3), layered), image(block(MASKED_FMA, 2), pid=2)], ["1 a", "2 b"])
    rows = by(folded.cells, axis)
    check_sum(rows, Tally.total(folded.cells.values()), axis)
    assert sum(sum(row.tally.flop().values()) for row in rows) == 2 * (3 + 5) + 2 * 2 * 16


def test_rows_are_named_and_ordered_by_work() -> None:
    folded = fold_processes(
        [image(block(runs=3)), image(block(runs=4), pid=2), image(pid=3)], ["1 sh", "2 axpy", "3 true"]
    )
    names = ["1 sh", "2 axpy", "3 true"]
    assert [row.name for row in by(folded.cells, "process", names)] == ["2 axpy", "1 sh", "3 true"]
    assert [row.name for row in by(folded.cells, "library")] == [LIBRARY]
    assert [row.name for row in by(folded.cells, "layer")] == [NOWHERE["layer"]]


def test_a_sum_that_does_not_hold_raises() -> None:
    with pytest.raises(AssertionError, match="by thread do not sum"):
        check_sum([Row("1", Tally({MUL: Count(1)}))], Tally({MUL: Count(2)}), "thread")


def test_an_axis_that_does_not_exist_raises() -> None:
    with pytest.raises(ValueError, match="no axis is named 'colour'"):
        by({}, "colour")


def test_merging_adds_the_same_places_up() -> None:
    one = fold([block(runs=1)])
    both = merged([one, fold([block(runs=2)])])
    assert both.cells == fold([block(runs=3)]).cells
    assert both.vector_instructions == 3 * 2
