"""Measure the constants of ``python/onefold/_engines/cost_estimates.py``, and print them.

    python benches/cost_constants.py [--match TEXT]

One thread, CPU time, the best of three. Each line has a constant, its value in the table, and the
smallest and largest value by which the calls of its row are explained, where the other constants
have the values of the table. Of an engine the table should be near the largest, and of refits near
the smallest.
"""

import argparse
import warnings
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from common.report import machine
from common.timing import cpu_seconds
from sklearn.datasets import make_classification
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import Lasso, LogisticRegression, Ridge
from sklearn.model_selection import ShuffleSplit
from sklearn.neighbors import KNeighborsClassifier

import onefold
from onefold._engines import cost_estimates as table

SINGLE = ShuffleSplit(1, test_size=0.1, random_state=0)


@dataclass(frozen=True)
class Call:
    """One call whose seconds are ``fixed + constant * units``, by an engine."""

    estimator: object
    rows: object
    engine: str
    units: float
    fixed: float = 0.0
    cv: object = 5
    n_classes: int = 2
    y: object = None
    """The targets, if they are not random classes."""

    def constant(self):
        """What the measured seconds say of the constant."""
        y = self.y
        if y is None:
            y = np.random.default_rng(0).permutation(np.arange(self.rows.shape[0]) % self.n_classes)

        def work():
            onefold.cross_validate(self.estimator, self.rows, y, cv=self.cv, engine=self.engine)

        seconds = min(cpu_seconds(work)[0] for _ in range(3))
        return (seconds - self.fixed) / self.units


def dense(n, p):
    """Normal values."""
    return np.random.default_rng(0).normal(size=(n, p))


def sparse(n, p, density):
    """Uniform values at random places."""
    return sp.random_array((n, p), density=density, format="csr", rng=np.random.default_rng(0))


def informative(n, p, n_classes=2):
    """Rows and classes that overlap."""
    return make_classification(
        n,
        p,
        n_informative=min(p, 15),
        n_classes=n_classes,
        n_clusters_per_class=1,
        random_state=0,
    )


def values(rows):
    """Stored values of sparse rows, and one for each row and feature."""
    return rows.nnz + sum(rows.shape)


def linear_calls():
    """Least squares, discriminants and elastic nets."""
    primal, dual = [dense(4000, 500), dense(5000, 200)], [dense(500, 5000), dense(300, 3000)]
    for rows in primal:
        yield "PRIMAL", Call(Ridge(), rows, "virtual", rows.size * rows.shape[1])
    for rows in dual:
        n, p = rows.shape
        yield "DUAL", Call(Ridge(), rows, "virtual", rows.size * n * (1 + n / p))
    for rows in primal + dual:
        fixed = 5 * table.FIT_OF_LEAST_SQUARES
        call = Call(Ridge(solver="sparse_cg"), rows, "refit", 5 * rows.size, fixed)
        yield "SWEEP", call
        yield "SWEEP", Call(Lasso(1.0), rows, "refit", 5 * rows.size, fixed)
    yield "FIT_OF_LEAST_SQUARES", Call(Lasso(1.0), dense(50, 5), "refit", 5)
    discriminant = LinearDiscriminantAnalysis()
    for n, p in ((200, 800), (300, 1000)):
        rows = dense(n, p)
        fixed = table.PRODUCT * n * p**2
        yield "EIGENVALUES", Call(discriminant, rows, "merge", 5 * p**3, fixed)
        fixed = 5 * table.FIT
        yield "SINGULAR_VALUES", Call(discriminant, rows, "refit", 5 * rows.size * n, fixed)
    for n, p, density in ((20_000, 200, 0.02), (2000, 200, 0.05), (500, 5000, 0.01)):
        rows, order = sparse(n, p, density), min(n, p)
        n_cubes, n_squares = (1, 1) if n <= p else (5, 5)
        fixed = table.PRODUCT * n_cubes * order**3 + table.SPARSE_GRAM * rows.nnz
        name = "SPARSE_DUAL" if n <= p else "SPARSE_PRIMAL"
        yield name, Call(Ridge(), rows, "virtual", n_squares * order**2, fixed)
        fixed = 5 * table.FIT_OF_SPARSE_ROWS
        yield "SPARSE_FIT", Call(Ridge(), rows, "refit", 5 * rows.nnz, fixed)
    yield "FIT_OF_SPARSE_ROWS", Call(Ridge(), sparse(50, 20, 0.1), "refit", 5)


def neighbor_calls():
    """A brute search, which refits do twice: for classes and for their shares."""
    classifier = KNeighborsClassifier(metric="manhattan", algorithm="brute")
    for rows in (dense(1500, 20), dense(3000, 10)):
        yield "DISTANCE", Call(classifier, rows, "neighbors", len(rows) * rows.size)


def smooth_calls():
    """Logistic regression of two classes."""
    two, machines = LogisticRegression(), LogisticRegression(solver="liblinear")
    yield "FIT", Call(two, dense(50, 5), "refit", 5)
    yield "LIBLINEAR_FIT", Call(machines, dense(50, 5), "refit", 5)
    yield "DENSE_START", Call(two, dense(50, 5), "newton", 1)
    yield "SPARSE_START", Call(two, sparse(50, 20, 0.1), "newton", 1)
    for n, p in ((300, 300), (1000, 300)):
        rows, y = informative(n, p)
        yield "DENSE_LBFGS_FIT", Call(two, rows, "refit", 5 * rows.size, 5 * table.FIT, y=y)
        fixed = 5 * table.LIBLINEAR_FIT
        yield "DENSE_SMOOTH_FIT", Call(machines, rows, "refit", 5 * rows.size, fixed, y=y)
        fixed = table.DENSE_START + 5 * table.DENSE_PASSES * rows.size
        fixed += table.PRODUCT * (table.HESSIANS * n + 5 * table.CUBES_PER_FOLD * p) * p**2
        yield "HESSIAN_CUBES", Call(two, rows, "newton", table.PRODUCT * p**3, fixed, y=y)
    for n, p, density in ((2000, 5000, 0.005), (2000, 20_000, 0.002)):
        rows = sparse(n, p, density)
        fixed = 5 * table.SPARSE_NEWTON_FOLD * values(rows)
        yield "SPARSE_NEWTON", Call(two, rows, "newton", values(rows), fixed)
        yield "SPARSE_LBFGS_FIT", Call(two, rows, "refit", 5 * values(rows), 5 * table.FIT)
        fixed = 5 * table.LIBLINEAR_FIT
        yield "SPARSE_SMOOTH_FIT", Call(machines, rows, "refit", 5 * values(rows), fixed)
    for n, p, density in ((5000, 100, 0.1), (5000, 300, 0.02)):
        rows = sparse(n, p, density)
        fixed = table.SPARSE_START + table.PRODUCT * p**2 * (n + p / 2)
        yield "SPARSE_HESSIAN", Call(two, rows, "newton", values(rows), fixed)


def joint_calls():
    """Logistic regression of ten classes."""
    for n, p in ((1500, 20), (1500, 60)):
        rows, y = informative(n, p, 10)
        fit = 10 * (table.JOINT_ROW * n + table.JOINT_VALUE * rows.size)
        call = {"cv": SINGLE, "y": y}
        yield "JOINT_PASSES", Call(LogisticRegression(), rows, "newton", fit, 0.6 * fit, **call)
        fixed = table.FIT + 10 * table.JOINT_VALUE * rows.size
        yield "JOINT_ROW", Call(LogisticRegression(), rows, "refit", 10 * n, fixed, **call)
    rows = sparse(1000, 20_000, 0.002)
    units = 10 * values(rows)
    fixed = 2 * table.SPARSE_JOINT_NEWTON_FOLD * units
    call = Call(LogisticRegression(), rows, "newton", units, fixed, cv=2, n_classes=10)
    yield "SPARSE_JOINT_NEWTON", call
    fixed = 2 * 10 * table.SPARSE_JOINT_VALUE * rows.nnz
    units = 2 * 10 * rows.shape[1]
    call = Call(LogisticRegression(), rows, "refit", units, fixed, cv=2, n_classes=10)
    yield "SPARSE_JOINT_FEATURE", call


def product_call():
    """Seconds of a multiplication and addition of a matrix product."""
    a = dense(1500, 1500)
    return min(cpu_seconds(lambda: a @ a)[0] for _ in range(3)) / 1500**3


def main():
    """Print the constants that the command line names."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--match", default="", help="part of the names of constants")
    match = parser.parse_args().match
    warnings.simplefilter("ignore")
    print(machine())
    if match in "PRODUCT":
        print(f"{'PRODUCT':24}  {table.PRODUCT:.2g}  {product_call():.2g}", flush=True)
    found = {}
    for calls in (linear_calls, neighbor_calls, smooth_calls, joint_calls):
        for name, call in calls():
            if match in name:
                found.setdefault(name, []).append(call)
    for name, calls in found.items():
        measured = [call.constant() for call in calls]
        value = getattr(table, name)
        value = value["liblinear"] if isinstance(value, dict) else value
        print(f"{name:24}  {value:.2g}  {min(measured):.2g} to {max(measured):.2g}", flush=True)


if __name__ == "__main__":
    main()
