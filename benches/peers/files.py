"""Files larger than memory against the same rows in memory, in one run.

    python benches/peers/files.py [--only tree merge least_squares] [--quick] [--write]

A generated matrix of 1 000 000 × 54 numbers (432 MB; a tenth with --quick) is read in blocks of a
budget of 80 MB (8 MB). The page cache holds the file. Both sides use two threads and the same
folds; predictions of tree and merge are compared bit for bit.
"""

import sys
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
from sklearn.linear_model import Ridge

sys.path.insert(0, str(Path(__file__).parents[1]))

from common.script import run
from common.timing import race

import onefold
from onefold.learners import GaussianNB, Pegasos

FOLDER = tempfile.TemporaryDirectory(prefix="onefold-bench-")


@cache
def rows(quick):
    """A path, rows and labels."""
    random = np.random.default_rng(0)
    X = random.normal(size=(100_000 if quick else 1_000_000, 54))
    path = Path(FOLDER.name, f"{len(X)}.npy")
    np.save(path, X)
    return path, X, (X @ random.normal(size=54) > 0).astype(float)


def compare(figures, name, model, quick, *, in_memory, on_disk, is_exact):
    """Ten contiguous folds and leave-one-out."""
    path, X, y = rows(quick)
    for cv, n_folds in (("10 folds", 10), ("leave-one-out", len(X))):
        folds = onefold.Folds.contiguous(len(X), n_folds)
        found = {}

        def memory(found=found, folds=folds):
            found["memory"] = onefold.cross_validate(
                model,
                X,
                y,
                cv=folds,
                n_jobs=2,
                scoring="neg_mean_squared_error",
                engine_options=in_memory,
            )

        def disk(found=found, folds=folds):
            found["disk"] = onefold.cross_validate(
                model,
                path,
                y,
                cv=folds,
                n_jobs=2,
                scoring="neg_mean_squared_error",
                engine_options={"memory_mb": 8 if quick else 80} | on_disk,
            )

        best = race(3, memory=memory, disk=disk)
        predictions = [own.predictions for own in found.values()]
        if is_exact:
            np.testing.assert_array_equal(*predictions)
        else:
            np.testing.assert_allclose(*predictions, atol=1e-9)
        figures.at_most(
            f"{name}, {cv}: time against rows in memory",
            best["disk"] / best["memory"],
            2,
            detail=f"{best['disk']:.2f} s / {best['memory']:.2f} s",
            ours=best["disk"],
        )


def tree(figures, quick, with_peers):
    """TreeCV of an order-sensitive learner, in random and in given order."""
    model = Pegasos(1e-4)
    once, given = {"order": "once"}, {"order": "fixed", "placement": "given"}
    compare(figures, "Pegasos", model, quick, in_memory=once, on_disk={}, is_exact=True)
    name = "Pegasos, given order"
    compare(figures, name, model, quick, in_memory=given, on_disk=given, is_exact=True)


def merge(figures, quick, with_peers):
    """Merging of naive Bayes."""
    options = {"in_memory": {}, "on_disk": {}, "is_exact": True}
    compare(figures, "GaussianNB", GaussianNB(), quick, **options)


def least_squares(figures, quick, with_peers):
    """Ridge regression by sums of all rows and of every fold."""
    options = {"in_memory": {}, "on_disk": {}, "is_exact": False}
    compare(figures, "Ridge", Ridge(), quick, **options)


PARTS = {"tree": tree, "merge": merge, "least_squares": least_squares}


if __name__ == "__main__":
    run(
        PARTS,
        __doc__,
        title="Files larger than memory, and the same rows in memory",
        result="files.md",
    )
