"""sys.exit(3), through a finally clause and an exit handler."""
# needs:

import atexit
import sys

atexit.register(print, "exit handler")
try:
    sys.exit(3)
finally:
    print("finally", file=sys.stderr)
