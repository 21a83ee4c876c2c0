"""ONNX models: sizes, constants, control flow, functions, parameters, bad input."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
# ruff: noqa: E402  # what follows needs onnx

from onnx import helper

from flopwatch.errors import UsageError
from flopwatch.estimating import Estimation
from flopwatch.flops.formulas import work
from flopwatch.flops.formulas.work import Numbers
from flopwatch.flops.operations import DType
from flopwatch.formats.onnx import trace
from tests.unit.formats.onnx_models import BOOL, FLOAT, INT64, model, node_model, seen, unknown_of, work_of

FP32 = Numbers(DType.FP32)
LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
node = helper.make_node


def floats(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.float32)


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


@pytest.mark.parametrize(
    ("name", "mac", "params"),
    [
        # Products of channels, positions and taps over all layers, as torchvision and Netscope publish them.
        ("resnet50", 4_089_184_256, 25_557_032),
        ("squeezenet", 349_151_936, 1_235_496),
        ("densenet121", 2_834_161_664, 8_062_504),
        ("vgg19", 19_632_062_464, 143_667_240),
    ],
)
def test_published_networks(name: str, mac: int, params: int) -> None:
    estimation = Estimation()
    traced = trace(LIGHT / f"light_{name}.onnx", estimation.see)
    assert sum(cell.mac for cell in estimation.cells) == mac
    assert sum(part.params for part in traced.parts) == params
    assert estimation.unknown == ()


@pytest.mark.parametrize("path", sorted(LIGHT.glob("*.onnx")), ids=lambda path: path.stem)
def test_networks_against_a_count_by_another_hand(path: Path) -> None:
    """Convolutions and dense layers from the shapes that onnx infers for the whole graph."""
    inferred = onnx.shape_inference.infer_shapes(onnx.load(path)).graph
    shapes = {
        info.name: [dim.dim_value for dim in info.type.tensor_type.shape.dim]
        for info in (*inferred.value_info, *inferred.input, *inferred.output)
    }
    expected = 0
    for each in inferred.node:
        if each.op_type == "Conv":
            expected += int(np.prod(shapes[each.output[0]])) * int(np.prod(shapes[each.input[1]][1:]))
        elif each.op_type == "Gemm":
            turned = {attribute.name: attribute.i for attribute in each.attribute}.get("transA", 0)
            expected += int(np.prod(shapes[each.output[0]])) * shapes[each.input[0]][0 if turned else 1]
        elif each.op_type == "MatMul":
            expected += int(np.prod(shapes[each.output[0]])) * shapes[each.input[0]][-1]
    assert work_of(path).mac == expected > 10**8


class TestSizes:
    DENSE = model([node("MatMul", ["x", "w"], ["y"])], {"x": ["batch", "tokens", 4]}, ["y"], {"w": floats(4, 8)})

    def test_missing_ones_are_named(self):
        with pytest.raises(UsageError, match=r"batch, tokens.*--dim batch=8"):
            seen(self.DENSE)

    def test_by_name(self):
        assert work_of(self.DENSE, dims={"batch": 2, "tokens": 5}).mac == 2 * 5 * 4 * 8

    def test_by_shape(self):
        assert work_of(self.DENSE, shapes={"x": (2, 5, 4)}).mac == 2 * 5 * 4 * 8
        assert work_of(self.DENSE, shapes=[(2, 5, 4)]).mac == 2 * 5 * 4 * 8

    def test_batch_and_name(self):
        assert work_of(self.DENSE, batch=2, dims={"tokens": 5}).mac == 2 * 5 * 4 * 8

    def test_a_name_that_two_inputs_share(self):
        both = model([node("Add", ["x", "y"], ["z"])], {"x": ["n", 3], "y": ["n", 3]}, ["z"])
        assert work_of(both, shapes={"x": (7, 3)}) == work(FP32, add=7 * 3)
        with pytest.raises(UsageError, match=r"The size n is said to be 7 and, by the input 'y', 8"):
            seen(both, shapes={"x": (7, 3), "y": (8, 3)})

    def test_one_without_a_name(self):
        unnamed = model([node("Relu", ["x"], ["y"])], {"x": [None, 3]}, ["y"])
        with pytest.raises(UsageError, match=r"x\[0\]"):
            seen(unnamed)
        assert work_of(unnamed, dims={"x[0]": 5}) == work(FP32, minmax=15)
        assert work_of(unnamed, batch=5) == work(FP32, minmax=15)

    def test_a_fixed_batch_is_replaced(self):
        fixed = model([node("Relu", ["x"], ["y"])], {"x": [1, 3]}, ["y"])
        assert work_of(fixed, batch=8) == work(FP32, minmax=8 * 3)

    def test_none(self):
        empty = model([node("MatMul", ["x", "w"], ["y"])], {"x": [0, 4]}, ["y"], {"w": floats(4, 8)})
        assert work_of(empty).mac == 0

    def test_huge(self):
        assert work_of(self.DENSE, dims={"batch": 2**40, "tokens": 2**20}).mac == 2**60 * 4 * 8

    def test_shapes_that_do_not_fit(self):
        with pytest.raises(UsageError, match=r"MatMul .* cannot take its inputs: 2x5x3, 4x8"):
            seen(self.DENSE, shapes={"x": (2, 5, 3)})

    @pytest.mark.parametrize(
        ("kind", "shapes"),
        [
            ("Conv", [(1, 5, 8, 8), (4, 3, 3, 3)]),
            ("ConvTranspose", [(1, 5, 8, 8), (3, 4, 3, 3)]),
            ("Gemm", [(2, 5), (3, 4)]),
            ("LSTM", [(7, 1, 5), (1, 16, 3), (1, 16, 4)]),
            ("BatchNormalization", [(1, 5, 8), (3,), (3,), (3,), (3,)]),
        ],
    )
    def test_sizes_that_onnx_does_not_compare(self, kind, shapes):
        with pytest.raises(UsageError, match=f"{kind} 'node' cannot take its inputs"):
            seen(node_model(kind, shapes))

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"dims": {"height": 3}}, r"No size of tested is called 'height'.*batch, tokens"),
            ({"dims": {"batch": -1}}, r"batch cannot be -1"),
            ({"shapes": {"z": (1,)}}, r"no input 'z'.*x"),
            ({"shapes": {"x": (1, 4)}}, r"'x' has 3 dimensions, not 2"),
            ({"shapes": [(1, 1, 4), (2,)]}, r"2 shapes are given, and the model has 1 input"),
            ({"batch": 0}, r"batch cannot have 0"),
        ],
    )
    def test_wrong_ones(self, options, message):
        with pytest.raises(UsageError, match=message):
            seen(self.DENSE, **options)


class TestShapesThatAreComputed:
    def test_a_reshape_by_the_shape_of_the_input(self):
        nodes = [
            node("Shape", ["x"], ["shape"]),
            node("Gather", ["shape", "first"], ["batch"]),
            node("Concat", ["batch", "rest"], ["wanted"], axis=0),
            node("Reshape", ["x", "wanted"], ["flat"]),
            node("MatMul", ["flat", "w"], ["y"]),
        ]
        constants = {"first": ints(0), "rest": ints(-1), "w": floats(12, 5)}
        graph = model(nodes, {"x": ["n", 3, 4]}, ["y"], constants)
        assert work_of(graph, dims={"n": 7}).mac == 7 * 12 * 5

    def test_what_depends_on_data_is_unknown_by_name_and_not_zero(self):
        nodes = [
            node("NonZero", ["x"], ["where"]),
            node("Cast", ["where"], ["f"], to=FLOAT),
            node("Sqrt", ["f"], ["y"]),
        ]
        assert unknown_of(model(nodes, {"x": [4, 4]}, ["y"])) == ["onnx::Sqrt (shape not known)"]

    def test_integers_of_unknown_shape_are_free(self):
        nodes = [node("NonZero", ["x"], ["where"]), node("Add", ["where", "where"], ["y"])]
        assert unknown_of(model(nodes, {"x": [4, 4]}, ["y"])) == []

    def test_the_file_may_say_what_cannot_be_found(self):
        graph = model(
            [node("Custom", ["x"], ["h"], domain="mine"), node("Relu", ["h"], ["y"])],
            {"x": [3]},
            ["y"],
            domains={"mine": 1},
        )
        assert unknown_of(graph) == ["mine::Custom", "onnx::Relu (shape not known)"]
        graph.graph.value_info.append(helper.make_tensor_value_info("h", FLOAT, [5]))
        assert unknown_of(graph) == ["mine::Custom"]


class TestControlFlow:
    def branches(self):
        then = helper.make_graph([node("Relu", ["x"], ["a"])], "then", [], [helper.make_empty_tensor_value_info("a")])
        double = [node("Sqrt", ["x"], ["h"]), node("Relu", ["h"], ["b"])]
        otherwise = helper.make_graph(double, "else", [], [helper.make_empty_tensor_value_info("b")])
        return {"then_branch": then, "else_branch": otherwise}

    def test_a_branch_that_is_known(self):
        graph = model([node("If", ["c"], ["y"], **self.branches())], {"x": [6]}, ["y"], {"c": np.array(True)})
        assert work_of(graph) == work(FP32, minmax=6)

    def test_the_larger_branch_of_two(self):
        graph = model(
            [node("If", ["c"], ["y"], name="choice", **self.branches())], {"x": [6], "c": []}, ["y"], types={"c": BOOL}
        )
        assert work_of(graph) == work(FP32, minmax=6, sqrt=6)
        assert seen(graph)[1].notes == (
            "choice: the condition is not known before the model runs; the larger branch (else) is counted",
        )

    def loop(self, nodes, *, carried=("h",), scanned=()):
        inputs = [("i", INT64, []), ("go", BOOL, []), *((name, FLOAT, None) for name in carried)]
        return helper.make_graph(
            [*nodes, node("Identity", ["go"], ["still"])],
            "body",
            [helper.make_tensor_value_info(*each) for each in inputs],
            [
                helper.make_empty_tensor_value_info(name)
                for name in ("still", *(f"{name}2" for name in carried), *scanned)
            ],
        )

    def test_a_loop_runs_as_often_as_it_says(self):
        body = self.loop([node("MatMul", ["h", "w"], ["h2"]), node("Relu", ["h2"], ["s"])], scanned=("s",))
        nodes = [node("Loop", ["n", "", "x"], ["y", "all"], name="loop", body=body), node("Sqrt", ["all"], ["z"])]
        graph = model(nodes, {"x": [2, 4]}, ["y", "z"], {"n": np.array(10), "w": floats(4, 4)})
        assert work_of(graph) == 10 * work(FP32, mac=2 * 4 * 4, minmax=8) + work(FP32, sqrt=10 * 8)
        assert {op.scope.layer: op.times for op in seen(graph)[0]} == {
            "loop": 1,
            "loop.h2": 10,
            "loop.s": 10,
            "loop.still": 10,
            "z": 1,
        }

    def test_a_loop_whose_values_grow(self):
        body = self.loop([node("Concat", ["h", "h"], ["h2"], axis=0), node("Relu", ["h2"], ["r"])])
        graph = model([node("Loop", ["n", "", "x"], ["y"], body=body)], {"x": [3]}, ["y"], {"n": np.array(4)})
        assert work_of(graph) == work(FP32, minmax=3 * (2 + 4 + 8 + 16))

    def test_a_loop_that_ends_nobody_knows_when(self):
        body = self.loop([node("Relu", ["h"], ["h2"])])
        graph = model(
            [node("Loop", ["n", "", "x"], ["y"], name="loop", body=body)],
            {"x": [3], "n": []},
            ["y"],
            types={"n": INT64},
        )
        assert unknown_of(graph) == ["onnx::Loop (how often it runs is not known)"]
        assert seen(graph)[1].notes == (
            "loop: how often it runs is not known before the model runs; what is in it is not counted",
        )

    def test_a_scan_is_as_long_as_its_input(self):
        body = helper.make_graph(
            [node("MatMul", ["h", "w"], ["h2"]), node("Add", ["h2", "x"], ["s"])],
            "body",
            [helper.make_tensor_value_info(name, FLOAT, None) for name in ("h", "x")],
            [helper.make_empty_tensor_value_info(name) for name in ("h2", "s")],
        )
        scan = node("Scan", ["h0", "xs"], ["hn", "ss"], body=body, num_scan_inputs=1)
        graph = model(
            [scan, node("Relu", ["ss"], ["y"])], {"h0": [4], "xs": [100, 4]}, ["hn", "y"], {"w": floats(4, 4)}
        )
        assert work_of(graph) == 100 * work(FP32, mac=16, add=4) + work(FP32, minmax=400)

    def test_a_sequence(self):
        nodes = [
            node("SplitToSequence", ["x"], ["parts"], axis=0),
            node("SequenceAt", ["parts", "first"], ["one"]),
            node("Relu", ["one"], ["y"]),
            node("ConcatFromSequence", ["parts"], ["all"], axis=0),
            node("Sqrt", ["all"], ["z"]),
        ]
        assert work_of(model(nodes, {"x": [4, 3]}, ["y", "z"], {"first": np.array(0)})) == work(FP32, minmax=3, sqrt=12)


class TestFunctions:
    def function(self):
        nodes = [node("Gemm", ["a", "w"], ["h"], name="product"), node("LeakyRelu", ["h"], ["b"], name="bend")]
        nodes[1].attribute.append(
            onnx.AttributeProto(name="alpha", ref_attr_name="slope", type=onnx.AttributeProto.FLOAT)
        )
        return helper.make_function("mine", "Dense", ["a", "w"], ["b"], nodes, [helper.make_opsetid("", 21)], ["slope"])

    def test_are_followed(self):
        calls = [node("Dense", ["x", "w"], ["y"], name="first", domain="mine", slope=0.1)]
        graph = model(
            calls, {"x": [3, 4]}, ["y"], {"w": floats(4, 5)}, functions=[self.function()], domains={"mine": 1}
        )
        assert work_of(graph) == work(FP32, mac=60, mul=15)
        traced = seen(graph)[1]
        assert [(part.name, part.params) for part in traced.parts] == [("first.product", 20), ("first.bend", 0)]

    def test_one_that_calls_itself(self):
        calling = node("Dense", ["a"], ["b"], domain="mine")
        endless = helper.make_function("mine", "Dense", ["a"], ["b"], [calling], [helper.make_opsetid("mine", 1)])
        graph = model(
            [node("Dense", ["x"], ["y"], domain="mine")], {"x": [3]}, ["y"], functions=[endless], domains={"mine": 1}
        )
        with pytest.raises(UsageError, match=r"calls itself"):
            seen(graph)


class TestParameters:
    def test_belong_to_the_first_layer_that_uses_them(self):
        nodes = [
            node("Transpose", ["w"], ["t"], name="turn"),
            node("MatMul", ["x", "t"], ["h"], name="up"),
            node("MatMul", ["h", "w"], ["y"], name="down"),
        ]
        traced = seen(model(nodes, {"x": [2, 4]}, ["y"], {"w": floats(8, 4)}))[1]
        assert [(part.name, part.params) for part in traced.parts] == [("turn", 0), ("up", 32), ("down", 0)]
        assert traced.parameters == 4 * 32

    def test_activations_at_their_peak(self):
        nodes = [
            node("Relu", ["x"], ["a"], name="a"),
            node("Concat", ["a", "a"], ["b"], axis=0, name="b"),
            node("Relu", ["b"], ["y"], name="c"),
        ]
        traced = seen(model(nodes, {"x": [10]}, ["y"]))[1]
        assert (traced.activations, traced.at) == (4 * (20 + 20), "c")


class TestFiles:
    def test_weights_in_another_file_are_not_needed(self, tmp_path):
        graph = model([node("MatMul", ["x", "w"], ["y"])], {"x": [2, 512]}, ["y"], {"w": floats(512, 512)})
        onnx.save(graph, tmp_path / "m.onnx", save_as_external_data=True, location="weights", size_threshold=0)
        (tmp_path / "weights").unlink()
        assert work_of(tmp_path / "m.onnx").mac == 2 * 512 * 512
        assert seen(tmp_path / "m.onnx")[1].notes == ()

    def test_a_shape_in_a_missing_file_is_told(self, tmp_path):
        nodes = [node("Reshape", ["x", "shape"], ["h"]), node("Relu", ["h"], ["y"])]
        graph = model(nodes, {"x": [2, 6]}, ["y"], {"shape": ints(3, 4)})
        onnx.save(graph, tmp_path / "m.onnx", save_as_external_data=True, location="weights", size_threshold=0)
        assert work_of(tmp_path / "m.onnx") == work(FP32, minmax=12)
        (tmp_path / "weights").unlink()
        assert unknown_of(tmp_path / "m.onnx") == ["onnx::Relu (shape not known)"]
        assert seen(tmp_path / "m.onnx")[1].notes == (
            "Shapes may depend on numbers in files that are not there: weights.",
        )

    @pytest.mark.parametrize("content", [b"", b"hello, I am no model", b"\x08\x0a\x12\xff\xff"])
    def test_no_model(self, tmp_path, content):
        (tmp_path / "m.onnx").write_bytes(content)
        with pytest.raises(UsageError, match=r"is empty|is no ONNX model"):
            seen(tmp_path / "m.onnx")

    def test_half_a_model(self, tmp_path):
        whole = (LIGHT / "light_squeezenet.onnx").read_bytes()
        (tmp_path / "m.onnx").write_bytes(whole[: len(whole) // 2])
        with pytest.raises(UsageError, match=r"no ONNX model, or only the first part of one"):
            seen(tmp_path / "m.onnx")

    def test_no_file(self, tmp_path):
        with pytest.raises(UsageError, match=r"cannot be read: No such file"):
            seen(tmp_path / "m.onnx")

    def test_too_new(self):
        graph = node_model("Relu", [(3,)])
        graph.opset_import[0].version = 999
        with pytest.raises(UsageError, match=r"opset 999.*pip install -U onnx"):
            seen(graph)
        graph.opset_import[0].version = 21
        graph.ir_version = 99
        with pytest.raises(UsageError, match=r"IR version 99"):
            seen(graph)

    def test_without_nodes(self):
        with pytest.raises(UsageError, match=r"without any node"):
            seen(model([], {"x": [1]}, ["x"]))

    def test_a_circle(self):
        graph = model([node("Relu", ["b"], ["a"], name="one"), node("Relu", ["a"], ["b"])], {}, ["b"])
        graph.graph.output[0].CopyFrom(helper.make_tensor_value_info("b", FLOAT, [3]))
        with pytest.raises(
            UsageError, match=r"Relu 'one' takes 'b', which no node before it makes.*must be topologically sorted"
        ):
            seen(graph)

    def test_without_onnx(self, monkeypatch):
        monkeypatch.setitem(__import__("sys").modules, "onnx", None)
        with pytest.raises(UsageError, match=r"flopwatch\[onnx\]"):
            trace("m.onnx", print)
