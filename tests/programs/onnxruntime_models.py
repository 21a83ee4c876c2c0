"""Small models through onnxruntime: a convolutional net, matrix products and an integer quantized product, built with onnx here."""
# needs: onnx onnxruntime numpy

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from show import show

rng = np.random.default_rng(12)


def constant(name: str, value: np.ndarray) -> onnx.TensorProto:
    return numpy_helper.from_array(value, name)


weights = [
    constant("w1", rng.standard_normal((8, 3, 3, 3)).astype(np.float32)),
    constant("w2", rng.standard_normal((8 * 7 * 7, 10)).astype(np.float32)),
]
nodes = [
    helper.make_node("Conv", ["x", "w1"], ["c"], pads=[1, 1, 1, 1]),
    helper.make_node("Relu", ["c"], ["r"]),
    helper.make_node("MaxPool", ["r"], ["p"], kernel_shape=[4, 4], strides=[4, 4]),
    helper.make_node("Flatten", ["p"], ["f"]),
    helper.make_node("MatMul", ["f", "w2"], ["m"]),
    helper.make_node("Softmax", ["m"], ["y"]),
]
graph = helper.make_graph(
    nodes,
    "net",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3, 28, 28])],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 10])],
    weights,
)
quantized = helper.make_graph(
    [helper.make_node("MatMulInteger", ["a", "b"], ["y"])],
    "quantized",
    [
        helper.make_tensor_value_info("a", TensorProto.UINT8, [16, 64]),
        helper.make_tensor_value_info("b", TensorProto.INT8, [64, 32]),
    ],
    [helper.make_tensor_value_info("y", TensorProto.INT32, [16, 32])],
)
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 2
feeds = [
    {"x": rng.standard_normal((2, 3, 28, 28)).astype(np.float32)},
    {"a": rng.integers(0, 255, (16, 64), dtype=np.uint8), "b": rng.integers(-127, 127, (64, 32), dtype=np.int8)},
]
for each, feed in zip((graph, quantized), feeds, strict=True):
    model = helper.make_model(each, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    for name, value in zip((out.name for out in session.get_outputs()), session.run(None, feed), strict=True):
        show(f"{each.name} {name}", value)
