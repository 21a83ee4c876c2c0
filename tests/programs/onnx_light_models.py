"""Known networks without weights, as the onnx package ships them for its own tests, filled in and run by onnxruntime."""
# needs: onnx onnxruntime numpy

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from show import show

folder = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
for name in ("light_squeezenet", "light_shufflenet"):
    session = onnxruntime.InferenceSession(folder / f"{name}.onnx", providers=["CPUExecutionProvider"])
    first = session.get_inputs()[0]
    image = np.random.default_rng(13).standard_normal(first.shape).astype(np.float32)
    for value in session.run(None, {first.name: image}):
        show(name, value)
