"""ctypes: C functions with doubles, callbacks from qsort, a callback on a foreign thread, structures, errno."""
# needs:

import ctypes
import ctypes.util

from show import show

libc, libm = ctypes.CDLL(None, use_errno=True), ctypes.CDLL(ctypes.util.find_library("m") or "libm.so.6")
libm.pow.restype, libm.pow.argtypes = ctypes.c_double, (ctypes.c_double, ctypes.c_double)
libm.sinf.restype, libm.sinf.argtypes = ctypes.c_float, (ctypes.c_float,)
show("pow", libm.pow(1.5, 2.5))
show("sinf", libm.sinf(0.5))
numbers = (ctypes.c_int * 50)(*[(i * 37) % 50 for i in range(50)])
compare = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))(
    lambda a, b: a[0] - b[0]
)
libc.qsort(numbers, 50, ctypes.sizeof(ctypes.c_int), compare)
show("sorted", list(numbers))
body = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(lambda argument: show("on a thread", argument))
thread = ctypes.c_ulong()
created = libc.pthread_create(ctypes.byref(thread), None, body, ctypes.c_void_p(42))
show("joined", (created, libc.pthread_join(thread, None)))
show("close", (libc.close(9999), ctypes.get_errno()))
