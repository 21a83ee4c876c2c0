"""KeyboardInterrupt by a SIGINT that it sends to itself: a traceback, and death by that signal."""
# needs:

import os
import signal
import time

signal.signal(signal.SIGINT, signal.default_int_handler)
print("before", flush=True)
os.kill(os.getpid(), signal.SIGINT)
time.sleep(5)
