"""Cross-validate on a cluster: covtype in 16 chunks, 100 folds.

A local cluster of two processes stands for two machines. Its workers read the chunks; the rows stay
there, and models are sent from chunk to chunk.

    pip install "onefold[dask]"
    python examples/dask_covtype.py

Reads ``covtype.libsvm.xz`` from the folder that the variable ONEFOLD_DATA names, and generates rows
of the same shape without it, or with a number of rows: ``python examples/dask_covtype.py 20000``.
"""

import os
import sys
import tempfile
import time
from pathlib import Path

import dask
import numpy as np
from distributed import Client, LocalCluster

import onefold
from onefold.distributed import cross_validate
from onefold.learners import Pegasos


def covtype():
    """Rows of unit variance in random order; class 2 or not."""
    path = Path(os.environ.get("ONEFOLD_DATA", ""), "covtype.libsvm.xz")
    random = np.random.default_rng(0)
    if path.is_file() and len(sys.argv) == 1:
        X, y = onefold.load_libsvm(path)
        order = random.permutation(len(y))
        X, y = X.toarray()[order], y[order] == 2
    else:
        X = random.standard_normal((int(sys.argv[1]) if len(sys.argv) > 1 else 581_012, 54))
        y = X @ random.standard_normal(54) + 3 * random.standard_normal(len(X)) > 0
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def write_chunks(X, y, folder):
    """16 files with the label in the first column."""
    for number, rows in enumerate(np.array_split(np.column_stack([y, X]), 16)):
        np.save(Path(folder, f"{number:02}.npy"), rows)
    return sorted(Path(folder).glob("*.npy"))


def read_chunk(path):
    """Run by the worker that is to have the chunk."""
    rows = np.load(path)
    return rows[:, 1:], rows[:, 0]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        X, y = covtype()
        chunks = [dask.delayed(read_chunk)(path) for path in write_chunks(X, y, folder)]
        print(f"{len(X)} rows of {X.shape[1]} features in {len(chunks)} chunks")
        with (
            LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
            Client(cluster),
        ):
            start = time.perf_counter()
            result = cross_validate(Pegasos(1e-4), chunks, cv=100)
            print(f"100 folds in {time.perf_counter() - start:.1f} s, reading included")
            print(f"accuracy {result.mean:.4f} ± {result.std_error:.4f}")
            for name in ("rows_fed", "tasks", "model_moves"):
                print(f"{name:<12}{result.cost[name]:>10}")

            # Rows in the order of the leaves, as one machine learns them: the same bits.
            fixed = cross_validate(Pegasos(1e-4), chunks, cv=100, engine_options={"order": "fixed"})
        folds = fixed.folds
        local = onefold.cross_validate(
            Pegasos(1e-4), X, y, cv=folds, engine="tree", engine_options={"order": "fixed"}
        )
        same = np.array_equal(fixed.decision_values, local.decision_values)
        print("same bits as on one machine:", same)
