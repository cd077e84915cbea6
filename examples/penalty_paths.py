"""Cross-validate whole paths of penalties: ridge, lasso and elastic net.

A path of ridge regression takes one factorisation for any number of penalties and folds, a path of
the lasso takes one Gram matrix. The grid can be fine and the folds can be many. The engine fits a
scaler to each training set.

Run it with ``python examples/penalty_paths.py``.
"""

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.linear_model import Lasso, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

import onefold
from onefold.linear_model import ElasticNetCV, LassoCV

X, y = load_diabetes(return_X_y=True)
products = PolynomialFeatures(2, include_bias=False).fit_transform(X)
print(f"{len(y)} rows; {X.shape[1]} features, {products.shape[1]} with their squares and products")

# Ridge: 200 penalties by leave-one-out.
alphas = np.logspace(-2, 5, 200)
ridge = make_pipeline(StandardScaler(), Ridge())
path = onefold.ridge_path(ridge, products, y, alphas=alphas, cv="loo")
print(f"\n{path}")
print("\n     alpha   leave-one-out error")
for position in range(0, len(alphas), 33):
    error = path.mse[position, 0]
    print(f"{alphas[position]:10.3g}   {error:8.1f}  {'*' * round(error / 150)}")

# Lasso: a search over a pipeline. The one-standard-error rule takes the largest penalty, and so
# the fewest features, that is not clearly worse than the best.
lasso = make_pipeline(StandardScaler(), Lasso())
grid = {"lasso__alpha": np.logspace(-1, 1.5, 30)}
for rule in ("best", "one_se"):
    search = onefold.GridSearchCV(lasso, grid, cv=10, rule=rule).fit(products, y)
    used = np.count_nonzero(search.best_estimator_[-1].coef_)
    alpha = search.best_params_["lasso__alpha"]
    print(f"\nLasso, rule={rule!r}: alpha {alpha:.3g}, {used} of {products.shape[1]} features")
    chosen = search.result_.chosen
    print(f"  R² {chosen.mean:.4f} ± {chosen.std_error:.4f}, engine={chosen.engine!r}")

# The classes that scikit-learn has for it, with the same engine inside.
for model in (LassoCV(cv=10), ElasticNetCV(l1_ratio=[0.5, 0.9, 0.99], cv=10)):
    model.fit(X, y)
    mse = model.mse_path_.mean(axis=-1).min()
    print(f"\n{model}\n  alpha {model.alpha_:.3g}, mean squared error of 10 folds {mse:.1f}")

# Which rows decide the fit? The influence of every row on a ridge regression.
print(f"\n{onefold.diagnostics(Ridge(0.1), X, y)}")
