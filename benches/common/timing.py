"""Clocks for a machine that is never quite quiet.

The sides of a comparison take turns, so that a slow minute is slow for all of them, and the best
time of each counts: noise only ever adds. Between turns there is a pause, because threads of a BLAS
go on looking for work for a while after the last of it, at the cost of whoever comes next.
"""

import time

__all__ = ["race", "seconds"]

PAUSE = 0.1


def seconds(work):
    """Run `work` once and return the seconds it took, without those to free what it returns."""
    start = time.perf_counter()
    answer = work()
    elapsed = time.perf_counter() - start
    del answer
    return elapsed


def race(rounds, **sides):
    """Run the sides in turn, `rounds` times each; return the best seconds of each by name."""
    best = dict.fromkeys(sides, float("inf"))
    for _ in range(rounds):
        for name, work in sides.items():
            time.sleep(PAUSE)
            best[name] = min(best[name], seconds(work))
    return best
