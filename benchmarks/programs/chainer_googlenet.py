"""Chainer's GoogLeNet with random weights on one black image: chainer_googlenet.py [functions].

With "functions" it counts itself by the hook and prints name and FLOP of each function as JSON; else it only runs.
"""

import json
import sys

import numpy

from flopwatch.frameworks.chainer.compat import load  # so that Chainer can be imported by today's Python and NumPy

load()
from chainer.links import GoogLeNet  # noqa: E402

numpy.random.seed(0)
model = GoogLeNet(pretrained_model=None)
image = numpy.zeros((224, 224, 3), numpy.float32)
if sys.argv[1:] == ["functions"]:
    import flopwatch.chainer

    with flopwatch.chainer.CounterHook() as counter:
        model.predict([image], oversample=False)
    print(json.dumps(counter.call_history))
else:
    model.predict([image], oversample=False)
