"""Waiting. Tests wait for conditions, with wait_for().

A few need time itself, and name the purpose: quiet_for() if something must not happen and no event shows when it could
have, work_for() in an engine of the test, pace() between the steps of a load, rate_of() for a frequency.
"""

import contextlib
import os
import signal
import time

from lib_http import LIMIT


def wait_for(condition, what, limit=LIMIT, step=0.005):
    """Polls until condition() is true; returns its value. Polls become rarer with time: the result is at most a
    twentieth late, and long waits leave the processor to other tests."""
    begin = time.monotonic()
    while True:
        value = condition()
        if value:
            return value
        waited = time.monotonic() - begin
        if waited > limit:
            raise AssertionError("waited %g s for: %s" % (limit, what))
        time.sleep(max(step, min(waited / 20, 0.05)))


def quiet_for(seconds, why):
    """The last resort: nothing may happen for this time. `why` says what could, and why no condition shows that it
    did not."""
    assert why
    time.sleep(seconds)


def work_for(seconds):
    """A test's engine works for this time."""
    time.sleep(seconds)


def pace(seconds):
    """A pause between two steps of a load, or of a slow link."""
    time.sleep(max(0, seconds))


def rate_of(count, seconds=1):
    """The increase of count() per second, measured over this time."""
    before, began = count(), time.monotonic()
    time.sleep(seconds)
    return (count() - before) / (time.monotonic() - began)


@contextlib.contextmanager
def stopped(process):
    """Stops the process, a child, for the block, and waits until it has stopped."""
    process.signal(signal.SIGSTOP)
    try:
        wait_for(lambda: os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOHANG | os.WNOWAIT), "that it stops")
        yield
    finally:
        process.signal(signal.SIGCONT)
