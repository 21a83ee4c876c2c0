"""So many matrix products of 512 x 512 in fp32: numpy_matmul.py PRODUCTS."""

import sys

import numpy

N = 512
left = numpy.ones((N, N), numpy.float32)
right = numpy.full((N, N), 2, numpy.float32)
for _ in range(int(sys.argv[1])):
    product = left @ right
    assert (product == 2 * N).all()
