"""Theorem 1 of the TreeCV paper in practice: how far TreeCV is from refits as n grows.

    ONEFOLD_DATA=… python benches/papers/theorem1.py [--repetitions 10] [--quick] [--write]

needs covtype.libsvm.xz. Every learner of `onefold.learners` is cross-validated with ten folds in
fixed order by the tree and by the standard method, on the same shuffled rows and the same folds.
The table holds the mean over the repetitions of |tree − refit|, the difference of the two estimates
of the risk. The theorem bounds it by the incremental stability of the learner: 0 where the order of
the rows does not matter, up to rounding; falling with n for stable learners; anything otherwise.
Pegasos is stable for its own loss at a rate of log(n)/(λn), which says nothing while λn < 1, and
refits in fixed order scatter widely themselves (Table 2 of the paper: ±2 % for any k).
``--write`` puts it into benches/results/theorem1.md.
"""

import argparse
import sys
import time
from pathlib import Path

import numpy as np
from sklearn.base import is_classifier, is_regressor
from sklearn.model_selection import KFold
from sklearn.preprocessing import minmax_scale

import onefold
from onefold import learners

sys.path.insert(0, str(Path(__file__).parents[1]))
from common import data
from common.report import machine, table, write

N_FOLDS = 10
SIZES = (1_000, 4_000, 16_000, 64_000, 256_000)

SETTINGS = {
    "Pegasos": ({"alpha": 1e-6}, {"alpha": 1e-2}),
    "LeastSquaresSGD": ({"step": lambda n: n**-0.5},),
    "HistogramDensity": ({"n_bins": 40, "range": (-20, 20)},),
}
"""Parameters other than the defaults: the paper's, a λ that is large against 1/n, and bins that
hold every standardised value."""

READING = """\
Order does not matter to naive Bayes, densities and exact least squares: the difference is zero, or
rounding. Learners that mind the order come closer to their refits as n grows where the theorem says
so (Pegasos with a λ that is large against 1/n, least squares with a step of 1/√n); where λn < 1 it
promises nothing, and the difference stays within the scatter of the refits themselves."""

INDICATORS = {"BernoulliNB", "ComplementNB", "MultinomialNB"}
"""Learners of counts: they get the 44 columns of covtype that are 0 or 1."""


class Covtype:
    """Covertype in the shapes that the learners ask for."""

    def __init__(self):
        self.X, self.is_first = data.covtype()
        # Standardised indicators have two values, of which the larger stands for 1.
        self.indicators = (self.X[:, 10:54] > 0).astype(float)
        self.elevation = minmax_scale(self.X[:, 0])

    def examples(self, estimator, rows):
        """Return X and y of the rows, for an estimator of any kind."""
        if type(estimator).__name__ in INDICATORS:
            return self.indicators[rows], self.is_first[rows]
        if is_classifier(estimator):
            return self.X[rows], self.is_first[rows]
        if is_regressor(estimator):
            return self.X[rows, 1:], self.elevation[rows]
        return self.X[rows, :10], None


def difference(estimator, X, y):
    """Return |tree − refit| of the estimated risk, the risk itself, and which loss it is."""
    engines = {"tree": {"placement": "given", "order": "fixed"}, "refit": {}}
    results = [
        onefold.cross_validate(
            estimator, X, y, cv=KFold(N_FOLDS), engine=engine, n_jobs=2, engine_options=options
        )
        for engine, options in engines.items()
    ]
    tree, refit = (result.losses.mean() for result in results)
    return abs(tree - refit), refit, results[0].loss


def row(name, settings, covtype, sizes, repetitions):
    """Return a line of the table: a learner's differences by n."""
    cells, risk, loss = [], np.nan, ""
    for n in sizes:
        values = {key: value(n) if callable(value) else value for key, value in settings.items()}
        estimator = getattr(learners, name)(**values)
        differences = []
        for repetition in range(repetitions):
            order = np.random.default_rng(repetition).permutation(len(covtype.X))[:n]
            apart, risk, loss = difference(estimator, *covtype.examples(estimator, order))
            differences.append(apart)
        cells.append(float(np.mean(differences)))
    fixed = [f"{key}={value}" for key, value in settings.items() if not callable(value)]
    return [", ".join([name, *fixed]), loss, f"{risk:.4g}", *(f"{cell:.1e}" for cell in cells)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repetitions", type=int, default=3, help="shuffles to average over")
    parser.add_argument("--quick", action="store_true", help="small n only")
    parser.add_argument("--write", action="store_true", help="write benches/results/theorem1.md")
    arguments = parser.parse_args()
    sizes = SIZES[:3] if arguments.quick else SIZES
    described = machine()
    print(described)
    covtype = Covtype()
    lines, skipped = [], []
    named = [(name, s) for name in learners.__all__ for s in SETTINGS.get(name, ({},))]
    for name, settings in named:
        start = time.perf_counter()
        try:
            lines.append(row(name, settings, covtype, sizes, arguments.repetitions))
        except (TypeError, ValueError) as error:
            skipped.append(f"{name} is skipped: {error}.")
            print(skipped[-1])
        else:
            print(*lines[-1], f"({time.perf_counter() - start:.1f} s)", flush=True)
    header = ("learner", "loss", "risk at the largest n", *(f"n = {n:,}" for n in sizes))
    text = [
        "# Theorem 1 in practice: |tree − refit|",
        described + ".",
        f"Covertype, {N_FOLDS} folds, fixed order, mean of {arguments.repetitions} shuffles.",
        table(header, lines),
        READING,
        *skipped,
    ]
    print("\n\n".join(text))
    if arguments.write:
        write("theorem1.md", "\n\n".join(text))


if __name__ == "__main__":
    main()
