"""Leave-one-out cross-validation on half a million rows.

Refits would train half a million models. TreeCV trains an incremental learner with at most log2(2n)
passes over the rows, naive Bayes takes about three, since its models can be merged, and ridge
regression one factorisation.

Run it with ``python examples/leave_one_out.py``, or with a number of rows:
``python examples/leave_one_out.py 20000``.
"""

import sys
from time import perf_counter

import numpy as np
from sklearn.linear_model import Ridge
from sklearn.naive_bayes import GaussianNB

import onefold
from onefold.learners import Pegasos

n_rows = int(sys.argv[1]) if len(sys.argv) > 1 else 500_000
n_features = 50

random = np.random.default_rng(0)
X = random.standard_normal((n_rows, n_features))
signal = X @ random.standard_normal(n_features) / np.sqrt(n_features)
y = signal + 0.5 * random.standard_normal(n_rows)
positive = y > 0


def leave_one_out(name, estimator, target, scoring):
    """Print the engine, the score, the number of rows fed, and the time."""
    start = perf_counter()
    result = onefold.cross_validate(estimator, X, target, cv="loo", scoring=scoring, n_jobs=-1)
    seconds = perf_counter() - start
    start = perf_counter()
    estimator.fit(X, target)
    fit = perf_counter() - start
    score = f"{scoring} {result.mean:.4f} ± {result.std_error:.4f}"
    fed = f"{result.cost['rows_fed'] / n_rows:.1f} n rows fed"
    print(f"{name:11s}{result.engine:8s}{score}; {fed}; {seconds:.2f} s, one fit {fit:.2f} s")
    return result


print(f"{n_rows:,} rows of {n_features} features, as many folds as rows")
pegasos = leave_one_out("Pegasos", Pegasos(alpha=1e-4), positive, "accuracy")
leave_one_out("GaussianNB", GaussianNB(), positive, "accuracy")
ridge = leave_one_out("Ridge", Ridge(1.0), y, "neg_mean_squared_error")

# Every row has a prediction of a model that has not seen it.
interval = ridge.interval(level=0.95)
print(f"\nRidge: {interval}")
worst = int(np.argmax(ridge.losses))
print(f"Worst row: {worst}, y {y[worst]:.3f}, predicted {ridge.predictions[worst]:.3f}")

# Pegasos depends on the order of rows, so TreeCV and refits differ a little. How much?
checked = onefold.cross_validate(
    Pegasos(alpha=1e-4), X, positive, cv=100, engine_options={"check": 5}, n_jobs=-1
)
print("\n100 folds, 5 of them also refitted:")
print(checked)
