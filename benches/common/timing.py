"""Clocks for a machine with other load.

The sides of a comparison take turns, so that a slow minute affects all of them, and the best time
of each counts: noise only adds. A pause between turns lets the threads of a BLAS, which spin for a
while after their work, come to rest.
"""

import math
import time

from threadpoolctl import threadpool_limits

__all__ = ["cpu_seconds", "race", "seconds"]

PAUSE = 0.1


def seconds(work):
    """Run `work` once and return the seconds it took, without those to free what it returns."""
    start = time.perf_counter()
    answer = work()
    elapsed = time.perf_counter() - start
    del answer
    return elapsed


def cpu_seconds(work):
    """Run `work` once with one BLAS thread; return the CPU time it took, and its result."""
    with threadpool_limits(1):
        start = time.process_time()
        result = work()
        return time.process_time() - start, result


def race(rounds, **sides):
    """Run the sides in turn, `rounds` times each; return the best seconds of each by name.

    A side that is None is left out: its time is NaN.
    """
    best = {name: math.nan if work is None else math.inf for name, work in sides.items()}
    for _ in range(rounds):
        for name, work in sides.items():
            if work is not None:
                time.sleep(PAUSE)
                best[name] = min(best[name], seconds(work))
    return best
