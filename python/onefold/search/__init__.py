"""Model selection: candidates, folds, a choice, and a fit to all rows.

Algorithms 1 to 4 of B. Recht's notes *Cross validation and friends* are a `GridSearchCV` with
``cv=Holdout(…)``, ``cv=10``, ``cv=MonteCarlo(…)`` and ``cv="loo"``. The penalty
that each of them chooses for a ridge regression, and its squared error on held-out rows:

>>> from sklearn.datasets import load_diabetes
>>> from sklearn.linear_model import Ridge
>>> from onefold import GridSearchCV, Holdout, MonteCarlo
>>> X, y = load_diabetes(return_X_y=True)
>>> def choose(cv):
...     grid = {"alpha": [0.001, 0.01, 0.1, 1, 10]}
...     search = GridSearchCV(Ridge(), grid, cv=cv, scoring="neg_mean_squared_error").fit(X, y)
...     return search.best_params_["alpha"], round(-search.best_score_)
>>> choose(Holdout(0.2, random_state=0))  # 1: one split
(0.1, 3373)
>>> choose(10)  # 2: ten folds
(0.01, 2997)
>>> choose(MonteCarlo(50, test_size=0.2, random_state=0))  # 3: fifty splits
(0.01, 3027)
>>> choose("loo")  # 4: leave-one-out
(0.01, 3000)

The four errors are those of the chosen candidate and so optimistic; `nested_cross_validate`
evaluates the choice on rows that it has not seen.
"""

from ..stats import Comparison
from ._estimators import GridSearchCV, RandomizedSearchCV
from ._keeper import MAX_KEPT_BYTES
from ._nested import nested_cross_validate
from ._result import SearchResult

__all__ = [
    "MAX_KEPT_BYTES",
    "Comparison",
    "GridSearchCV",
    "RandomizedSearchCV",
    "SearchResult",
    "nested_cross_validate",
]
