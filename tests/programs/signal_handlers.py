"""Handlers in Python: alarms during computation and sleep, an exception out of a handler, wake-up descriptors, blocked signals."""
# needs:

import os
import signal
import time

from show import show

seen = []
signal.signal(signal.SIGALRM, lambda number, frame: seen.append(number))
signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
value = 0.0
while len(seen) < 5:
    value = (value + 1.5) % 7
started = time.monotonic()
time.sleep(0.1)
show("slept whole", time.monotonic() - started >= 0.1)
signal.setitimer(signal.ITIMER_REAL, 0)
show("alarms", len(seen) >= 5)


class Stop(Exception):
    pass


def stop(number: int, frame: object) -> None:
    raise Stop(signal.Signals(number).name)


signal.signal(signal.SIGUSR1, stop)
try:
    os.kill(os.getpid(), signal.SIGUSR1)
    time.sleep(5)
except Stop as error:
    show("raised", error)
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2})
os.kill(os.getpid(), signal.SIGUSR2)
show("pending", signal.sigpending())
show("waited", signal.sigwait({signal.SIGUSR2}))
show(
    "handlers",
    [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGCHLD, signal.SIGSEGV, signal.SIGPIPE)],
)
