"""Races of six grids of refitted candidates: the share of fits that is saved, and the choice.

    python benches/peers/races.py [--quick]

For each grid the full search is compared with ``prune="safe"`` and ``prune="race"``: the best
parameters and the best score of the first must be unchanged. ``--quick`` takes a third of the rows.
"""

import sys
import warnings

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine
from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import SGDClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.tree import ExtraTreeClassifier, ExtraTreeRegressor

import onefold

RATES = {"learning_rate": [0.01, 0.1, 0.5, 1.0], "max_depth": [1, 2, 4], "subsample": [0.5, 1.0]}
LEAVES = {
    "max_depth": [1, 2, 3, 5, None],
    "min_samples_leaf": [1, 2, 5, 20],
    "max_features": [0.2, 1.0],
}

GRIDS = {
    "boosting, accuracy, 5 folds": (
        GradientBoostingClassifier(n_estimators=20, random_state=0),
        RATES,
        load_breast_cancer,
        {"cv": 5},
    ),
    "boosting, squared error, 10 folds": (
        GradientBoostingRegressor(n_estimators=20, random_state=0),
        RATES,
        load_diabetes,
        {"cv": 10, "scoring": "neg_mean_squared_error"},
    ),
    "trees, AUC, 10 folds": (
        ExtraTreeClassifier(random_state=0),
        LEAVES,
        load_breast_cancer,
        {"cv": 10, "scoring": "roc_auc"},
    ),
    "trees, R², 5 folds": (ExtraTreeRegressor(random_state=0), LEAVES, load_diabetes, {"cv": 5}),
    "linear models, accuracy, 10 folds": (
        SGDClassifier(random_state=0, max_iter=50),
        {"alpha": np.logspace(-5, 1, 8), "loss": ["hinge", "log_loss", "modified_huber"]},
        load_digits,
        {"cv": 10},
    ),
    "networks, log loss, 5 folds": (
        MLPClassifier(random_state=0, max_iter=50),
        {
            "hidden_layer_sizes": [(5,), (20,), (50,)],
            "alpha": [1e-4, 1e-1, 10.0],
            "learning_rate_init": [1e-3, 1e-2, 1e-1],
        },
        load_wine,
        {"cv": 5, "scoring": "neg_log_loss"},
    ),
}


def main():
    """Print a line for each grid, and the medians."""
    step = 3 if "--quick" in sys.argv else 1
    shares = {"safe": [], "race": []}
    for name, (estimator, grid, load, keywords) in GRIDS.items():
        X, y = load(return_X_y=True)
        data = X[::step], y[::step]
        search = onefold.GridSearchCV(estimator, grid, engine="refit", **keywords)
        full = search.fit(*data)
        best, score, n_fits = full.best_params_, full.best_score_, full.result_.cost["fits"]
        line = f"{name:36} {n_fits:4} fits"
        for prune, saved in shares.items():
            pruned = search.set_params(prune=prune).fit(*data)
            saved.append(1 - pruned.result_.cost["fits"] / n_fits)
            is_same = pruned.best_params_ == best and pruned.best_score_ == score
            line += f"   {prune}: saves {saved[-1]:4.0%}, best {'same' if is_same else 'OTHER'}"
            if prune == "safe" and not is_same:
                raise AssertionError(f"{name}: {pruned.best_params_} instead of {best}")
        print(line, flush=True)
    print(", ".join(f"{prune}: median {np.median(saved):.0%}" for prune, saved in shares.items()))


if __name__ == "__main__":
    warnings.simplefilter("ignore", ConvergenceWarning)
    main()
