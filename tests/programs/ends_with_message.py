"""sys.exit with a message: it goes to stderr, and the code is 1; a thread that still runs is waited for."""
# needs:

import sys
import threading
import time


def late() -> None:
    time.sleep(0.2)
    print("the thread ended")


threading.Thread(target=late).start()
sys.exit("a message")
