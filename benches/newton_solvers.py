"""The two solvers of smooth losses, each forced on the same problems: CPU seconds of one thread.

python benches/newton_solvers.py
"""

import argparse
import time
from pathlib import Path

import numpy as np
from common import data
from common.report import machine, table

from onefold import _core
from onefold._engines.newton_problem import NewtonOptions
from onefold._inputs.data import as_rows
from onefold._inputs.folds import resolve_cv

RESULTS = Path(__file__).parent / "results" / "newton_solvers.md"
MAX_HESSIAN_BYTES = 2e9

PROSE = """
Logistic regression with C = 1 and an intercept, every fold to a relative gradient of 1e-8.
*Hessians* forms and factors the Hessian of every fold, and shares passes over the rows between
folds; *matrix-free* takes truncated Newton steps by preconditioned conjugate gradients.

A single body for both, truncated Newton steps preconditioned by the factor of the fold's Hessian,
has not been written or measured. What is measured is today's matrix-free solver in the place of
Hessians: where the ratio is above 1.3, it cannot replace them, so both solvers stay. Hessians of
62,061 features would take 31 GB for one fold.

Outputs differ at equal gradients where the penalty hardly determines them: columns of covtype are
nearly dependent.
"""


def problems():
    """The names, rows and labels, and numbers of folds."""
    X, y = data.a9a(32_561)
    yield "a9a", X, y > 0, (10, 100)
    X, y = data.read("mnist.libsvm.xz", 780)
    rows = np.random.default_rng(0).permutation(X.shape[0])[:10_000]
    yield "mnist, even against odd digits", X[rows].toarray() / 255, y[rows] % 2 == 0, (5,)
    yield "news20, class 1 against the rest", *data.news20(), (10,)
    yield "covtype", *data.covtype(constant=False), (10, 100)


def seconds(X, codes, folds, method):
    """CPU time, and the result."""
    models = _core.SmoothModel.family("logistic", [1.0], intercept="free")
    options, examples = NewtonOptions(1e-8, method=method), (X, codes, 2, None)
    start = time.process_time()
    (result,) = _core.cross_validate("newton", models, examples, folds, options)
    return time.process_time() - start, result


def rows(n_repeats):
    """One row of the table for each problem and number of folds."""
    for name, X, labels, counts in problems():
        X, codes = as_rows(X), labels.astype(np.uint32)
        for k in counts:
            folds = resolve_cv(k, X)
            methods = ["matrix-free"]
            if 8 * X.shape[1] ** 2 <= MAX_HESSIAN_BYTES:
                methods.insert(0, "hessians")
            best, outputs = {}, []
            for method in methods:
                runs = [seconds(X, codes, folds, method) for _ in range(n_repeats)]
                best[method] = min(taken for taken, _ in runs)
                outputs.append(runs[0][1].outputs)
            apart = f"{np.abs(outputs[0] - outputs[-1]).max():.0e}" if len(best) == 2 else "-"
            direct, free = best.get("hessians"), best["matrix-free"]
            yield (
                name,
                f"{X.shape[0]:,} × {X.shape[1]:,}",
                k,
                "too large" if direct is None else f"{direct:.2f}",
                f"{free:.2f}",
                "-" if direct is None else f"{free / direct:.2f}",
                apart,
            )
            print(name, k, best, flush=True)


def main():
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=2)
    arguments = parser.parse_args()
    header = ["data", "rows × features", "folds", "Hessians, s", "matrix-free, s", "ratio"]
    text = table([*header, "largest difference of outputs"], list(rows(arguments.repeats)))
    RESULTS.write_text(f"# Two solvers of smooth losses\n\n{machine()}\n{PROSE}\n{text}\n")


if __name__ == "__main__":
    main()
