"""os._exit with output that was flushed, and some that was not."""
# needs:

import os
import sys

print("flushed", flush=True)
sys.stdout.write("never seen")
os._exit(5)
