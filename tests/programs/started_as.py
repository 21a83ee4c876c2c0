"""What a script can see of how it was started: arguments, names, flags, its main module, finders and threads."""
# needs:

import builtins
import os
import sys
import threading

print(sys.argv[1:], os.path.basename(sys.argv[0]), __name__, os.path.basename(__file__), __spec__, __package__)
print(sorted(name for name in globals()))
print(sys.modules["__main__"].__dict__ is globals(), os.path.basename(sys.path[0]), len(sys.path))
print(sys.flags, sys.gettrace(), sys.getprofile(), sys.getrecursionlimit(), sys.dont_write_bytecode)
print([os.path.basename(word) for word in sys.orig_argv], os.path.basename(sys.executable))
print([getattr(finder, "__name__", type(finder).__name__) for finder in sys.meta_path], builtins.__import__)
print(threading.current_thread().name, threading.active_count(), sys._getframe().f_back)
print(sys.stdin.isatty(), sys.stdout.isatty(), sys.stdout.encoding, sys.stdout.line_buffering)
print(sorted(name for name in os.environ if "FLOPWATCH" in name.upper() or name.startswith("LD_")))
