"""What the strategies of TreeCV copy, keep and cost: copy, share, revert, and what auto chooses.

    ONEFOLD_DATA=… python benches/papers/copy_on_write.py [--quick] [--only covtype …] [--write]

needs a release build (``make .venv/bench``), covtype.libsvm.xz, letter.scale and news20.bz2. For
every data set, number of folds, one candidate and 16 at once, one thread and two, the table shows
the bytes of model vectors copied, the values saved in undo logs, the largest number of models alive
and the seconds of the core. Models of several candidates count as one. The strategies take turns,
and their best times count, except those above LONG_SECONDS, which are run once. The outputs of all
strategies are compared bit by bit. ``--write`` puts the table into results/copy_on_write.md;
``--quick`` takes 2 000 rows and one round.

Copy and share are left out where one model per fold is more than ``--max-gigabytes``.
"""

import argparse
import sys
from functools import partial
from math import inf
from pathlib import Path

import numpy as np

from onefold.learners import Pegasos

sys.path.insert(0, str(Path(__file__).parents[1]))
from common import data
from common.native import Native
from common.report import machine, table, write
from common.timing import race, seconds

STRATEGIES = ("copy", "share", "revert", "auto")
N_CANDIDATES = (1, 16)
LONG_SECONDS = 20
CASES = {
    "covtype": (data.covtype, 1e-6, ("loo",)),
    "letter.scale": (data.letter, 1e-4, ("loo", 100)),
    "news20": (partial(data.news20, binary=False), 1e-4, (100, "loo")),
}
"""Data set, regularisation, numbers of folds."""
HEADER = (
    "data",
    "folds",
    "candidates",
    "threads",
    "strategy",
    "GB copied",
    "undo entries",
    "peak models",
    "seconds",
    "against copy",
)


def candidates(alpha, n):
    """Return `n` learners whose regularisation is `alpha` and less."""
    return [Pegasos(factor * alpha) for factor in np.logspace(0, -2, n)]


def check_bits(found):
    """Raise unless the strategies have returned the same outputs."""
    (first, expected), *others = found.items()
    for strategy, outputs in others:
        for a, b in zip(expected, outputs, strict=True):
            if not np.array_equal(a.view(np.uint64), b.view(np.uint64)):
                raise SystemExit(f"{strategy} differs from {first}")


def measure(native, k, n_jobs, rounds, max_bytes):
    """Return the counters and the seconds of every strategy; None for those left out."""
    folds = native.folds(k)
    model_bytes = sum(learner.state.nbytes for learner in native.learners())
    outputs, costs, best = {}, {}, {}
    for name in STRATEGIES:
        if name in ("copy", "share") and k * model_bytes > max_bytes:
            continue

        def work(name=name):
            outputs[name], costs[name] = native.run("tree", folds, n_jobs=n_jobs, strategy=name)

        best[name] = seconds(work)
    check_bits(outputs)
    outputs.clear()
    again = {
        name: partial(native.tree, folds, n_jobs=n_jobs, strategy=name)
        for name in best
        if best[name] < LONG_SECONDS
    }
    best |= race(rounds, **again)
    return {name: (costs[name], best[name]) if name in best else None for name in STRATEGIES}


def lines(label, k, n_candidates, n_jobs, found):
    """Yield a line of the table per strategy."""
    reference = found["copy"][1] if found["copy"] else inf
    for strategy, measured in found.items():
        case = (label, k, n_candidates, n_jobs, strategy)
        if measured is None:
            yield (*case, "left out", "", "", "", "")
            continue
        cost, taken = measured
        yield (
            *case,
            f"{cost['bytes_copied'] / 1e9:.3g}",
            f"{cost['undo_entries']:,}",
            cost["peak_models"],
            f"{taken:.3g}",
            f"{taken / reference:.2f}" if reference < inf else "",
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="2 000 rows, one round")
    parser.add_argument("--only", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--max-gigabytes", type=float, default=160)
    parser.add_argument("--write", action="store_true", help="write results/copy_on_write.md")
    arguments = parser.parse_args()
    described = machine()
    print(described)
    rows = []
    for label in arguments.only:
        load, alpha, numbers_of_folds = CASES[label]
        X, y = load()
        if arguments.quick:
            X, y = X[:2000], y[:2000]
        for k in numbers_of_folds:
            for n_candidates in N_CANDIDATES:
                first, *others = candidates(alpha, n_candidates)
                native = Native(first, X, y, *others)
                n_folds = len(y) if k == "loo" else k
                for n_jobs in (1, 2):
                    found = measure(
                        native,
                        n_folds,
                        n_jobs,
                        1 if arguments.quick else arguments.rounds,
                        arguments.max_gigabytes * 1e9,
                    )
                    for line in lines(label, k, n_candidates, n_jobs, found):
                        rows.append(line)
                        print(*line, sep="  ", flush=True)
    if arguments.write:
        text = ["# Copy, share and revert", described + ".", table(HEADER, rows)]
        write("copy_on_write.md", "\n\n".join(text))


if __name__ == "__main__":
    main()
