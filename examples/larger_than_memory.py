"""Cross-validate a file that is larger than the memory it may take.

A LIBSVM file is written block by block, then cross-validated by a learner that depends on the
order of rows, by naive Bayes and in a search, each within a twentieth of the memory that its rows
would need.

Run it with ``python examples/larger_than_memory.py``, or with a number of rows:
``python examples/larger_than_memory.py 20000``.
"""

import os
import sys
import tempfile
from pathlib import Path

import numpy as np

import onefold
from onefold.learners import GaussianNB, Pegasos

n_rows = int(sys.argv[1]) if len(sys.argv) > 1 else 300_000
n_features = 40
folder = tempfile.TemporaryDirectory()
path = Path(folder.name, "big.libsvm")

random = np.random.default_rng(0)
weights = random.standard_normal(n_features)
with open(path, "wb") as file:
    for start in range(0, n_rows, 10_000):
        X = random.standard_normal((min(10_000, n_rows - start), n_features)).round(3)
        y = X @ weights + random.standard_normal(len(X)) > 0
        onefold.dump_libsvm(X, y, file, zero_based=False)

needed_mb = n_rows * n_features * 12 / 1e6
memory_mb = needed_mb / 20
print(f"{os.path.getsize(path) / 1e6:.0f} MB of text, {needed_mb:.0f} MB in memory")
print(f"rows are read in blocks that take {memory_mb:.1f} MB together")


def show(name, result):
    """Print a score with its standard error, and the cost."""
    fed = result.cost["rows_fed"] / n_rows
    print(f"{name}: {result.mean:.4f} ± {result.std_error:.4f}, {fed:.1f} n rows fed")


options = {"memory_mb": memory_mb, "temp_dir": folder.name}
pegasos = onefold.cross_validate(Pegasos(1e-4), path, cv=10, n_jobs=-1, engine_options=options)
show("Pegasos, 10 folds", pegasos)
show(
    "Pegasos, leave-one-out",
    onefold.cross_validate(Pegasos(1e-4), path, cv="loo", engine_options=options),
)
show(
    "GaussianNB, 10 folds",
    onefold.cross_validate(GaussianNB(), path, cv=10, engine_options=options),
)

search = onefold.GridSearchCV(
    Pegasos(), {"alpha": [1e-5, 1e-4, 1e-3]}, cv=5, engine_options=options
)
search.fit(path)
print(f"search: {search.best_params_}, fitted to all rows: {search.best_estimator_}")

# The bits are those of the same rows in memory, read in the same order.
in_memory = onefold.cross_validate(
    Pegasos(1e-4), *onefold.load_libsvm(path), cv=10, engine_options={"order": "once"}
)
print("same predictions in memory:", np.array_equal(pegasos.predictions, in_memory.predictions))
folder.cleanup()
