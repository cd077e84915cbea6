"""Virtual k-fold against scikit-learn and cvmatrix, all in one run.

    python benches/peers/virtual_cv.py [--quick] [--repeat N] [--write] [--without-peers]

Rows are those of covtype (features scaled to unit variance, class 2 against the rest as target)
where ONEFOLD_DATA points to the data sets, else as many random ones: 581 012 × 54. Figures are the
least of several runs, in seconds. `pip install cvmatrix` adds that peer.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import os
import sys
import time
from pathlib import Path

import numpy as np
from sklearn.linear_model import Ridge, RidgeCV
from sklearn.model_selection import GridSearchCV, KFold
from threadpoolctl import threadpool_limits

from onefold.virtual import ridge_path

sys.path.insert(0, str(Path(__file__).parents[1]))
from common.report import Figures, add_options, machine, write_figures

MSE = "neg_mean_squared_error"
ALPHAS = np.logspace(-2, 4, 20)


def rows(n):
    folder = os.environ.get("ONEFOLD_DATA")
    if folder is None:
        print("ONEFOLD_DATA is not set: random rows stand in for covtype")
        rng = np.random.default_rng(0)
        X = rng.standard_normal((n, 54))
        return X, X @ rng.standard_normal(54) + rng.standard_normal(n)
    import lzma

    from sklearn.datasets import load_svmlight_file

    with lzma.open(Path(folder) / "covtype.libsvm.xz") as file:
        X, labels = load_svmlight_file(file)
    order = np.random.default_rng(0).permutation(X.shape[0])[:n]
    X = X[order].toarray()
    X = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-12)
    return np.ascontiguousarray(X), (labels[order] == 2).astype(float)


def least(function, repeat):
    """The least time of several runs; NaN without a function."""
    times = []
    if function is None:
        return math.nan
    for _ in range(repeat):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def peak(function):
    """How far the resident memory rises above what it was before, in bytes (Linux)."""
    Path("/proc/self/clear_refs").write_text("5")
    before = status("VmRSS")
    function()
    return status("VmHWM") - before


def status(name):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))


def cvmatrix_path(X, y, alphas, n_folds):
    """The same grid built on cvmatrix: its training matrices, one eigendecomposition per fold."""
    from cvmatrix.cvmatrix import CVMatrix

    folds = KFold(n_folds)
    matrices = CVMatrix(center_X=True, center_Y=True, scale_X=False, scale_Y=False, copy=False)
    matrices.fit(X, y[:, None])
    errors = np.zeros((n_folds, len(alphas)))
    for fold, (_, test) in enumerate(folds.split(X)):
        (gram, products), (x_mean, _, y_mean, _) = matrices.training_XTX_XTY(test)
        values, vectors = np.linalg.eigh(gram)
        along = vectors.T @ products
        theta = vectors @ (along / (values[:, None] + alphas))
        predicted = (X[test] - x_mean) @ theta + y_mean
        errors[fold] = np.mean((y[test, None] - predicted) ** 2, axis=0)
    return errors.mean(axis=0)


def faster(figures, name, ours, theirs, bound, peer):
    """Add how much faster than a peer we are."""
    detail = f"{theirs:.3f} s / {ours:.3f} s"
    name = f"{name}, faster than {peer}"
    figures.at_least(name, theirs / ours, bound, detail=detail, ours=ours)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--write", action="store_true", help="write benches/results/virtual_cv.md")
    add_options(parser)
    args = parser.parse_args()
    figures, with_peers = Figures(), not args.without_peers
    X, y = rows(58_101 if args.quick else 581_012)
    jobs = os.cpu_count()
    print(described := machine())
    print(f"{X.shape[0]} × {X.shape[1]}, {jobs} threads for all")

    def loo():
        return ridge_path(Ridge(), X, y, alphas=ALPHAS, n_jobs=jobs)

    def ten_fold():
        return ridge_path(Ridge(), X, y, alphas=ALPHAS, cv=10, n_jobs=jobs)

    ours = least(loo, args.repeat)
    theirs = least((lambda: RidgeCV(ALPHAS).fit(X, y)) if with_peers else None, 1)
    faster(figures, "leave-one-out, 20 penalties", ours, theirs, 15, "RidgeCV")
    ours = least(ten_fold, args.repeat)
    # Two of the twenty penalties are enough to time the search: its cost is linear in them.
    grid = {"alpha": ALPHAS[:2]}
    search = GridSearchCV(Ridge(), grid, cv=KFold(10), scoring=MSE, refit=False)
    theirs = least((lambda: search.fit(X, y)) if with_peers else None, 1) * len(ALPHAS) / 2
    faster(figures, "10-fold, 20 penalties", ours, theirs, 100, "GridSearchCV (2 of 20)")
    with_cvmatrix = with_peers and importlib.util.find_spec("cvmatrix")
    theirs = least(
        (lambda: cvmatrix_path(X, y, ALPHAS, 10)) if with_cvmatrix else None, args.repeat
    )
    faster(figures, "10-fold, 20 penalties", ours, theirs, 5, "cvmatrix")
    if with_cvmatrix:
        found = ten_fold().mse[:, 0]
        np.testing.assert_allclose(found, cvmatrix_path(X, y, ALPHAS, 10), rtol=1e-8)
    for name, function in [("leave-one-out", loo), ("10-fold", ten_fold)]:
        percent = 100 * peak(function) / X.nbytes
        figure = f"peak memory above X, {name}, 20 penalties"
        figures.at_most(figure, percent, 25, unit=" % of X")

    with threadpool_limits(1):
        fit = (lambda: Ridge(solver="cholesky").fit(X, y)) if with_peers else None
        one = least(fit, args.repeat + 2)
        for name, cv in [("10-fold", 10), ("leave-one-out", "loo")]:
            ours = least(lambda cv=cv: ridge_path(Ridge(), X, y, alphas=[1.0], cv=cv), args.repeat)
            figures.at_most(
                f"{name}, one penalty, one thread, against one Ridge.fit",
                ours / one,
                3,
                detail=f"{ours:.3f} s / {one:.3f} s",
                ours=ours,
            )

    rng = np.random.default_rng(0)
    wide = rng.standard_normal((400 if args.quick else 2000, 5000))
    target = wide[:, :50].sum(axis=1) + rng.standard_normal(len(wide))
    ours = least(lambda: ridge_path(Ridge(), wide, target, alphas=ALPHAS, n_jobs=jobs), args.repeat)
    fit = (lambda: RidgeCV(ALPHAS).fit(wide, target)) if with_peers else None
    theirs = least(fit, args.repeat)
    name = f"{len(wide):,} × 5 000 (dual), leave-one-out, 20 penalties".replace(",", " ", 1)
    faster(figures, name, ours, theirs, 5, "RidgeCV")
    print(figures.summary())
    figures.save(args.json)
    if args.write:
        title = "Virtual k-fold: ours and theirs in one run"
        write_figures("virtual_cv.md", title, described, figures)


if __name__ == "__main__":
    main()
