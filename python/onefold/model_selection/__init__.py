"""Model selection: candidates, folds, a choice, and a fit to all rows.

Algorithms 1 to 4 of B. Recht's notes *Cross validation and friends* are a `GridSearchCV` with
``cv=holdout(…)``, ``cv=10``, ``cv=monte_carlo(…)`` and ``cv="loo"``. The penalty
that each of them chooses for a ridge regression, and its squared error on held-out rows:

>>> from sklearn.datasets import load_diabetes
>>> from sklearn.linear_model import Ridge
>>> from onefold import GridSearchCV, holdout, monte_carlo
>>> X, y = load_diabetes(return_X_y=True)
>>> def choose(cv):
...     grid = {"alpha": [0.001, 0.01, 0.1, 1, 10]}
...     search = GridSearchCV(Ridge(), grid, cv=cv, scoring="neg_mean_squared_error").fit(X, y)
...     return search.best_params_["alpha"], round(-search.best_score_)
>>> choose(holdout(0.2, random_state=0))  # 1: one split
(0.1, 3373)
>>> choose(10)  # 2: ten folds
(0.01, 2997)
>>> choose(monte_carlo(50, test_size=0.2, random_state=0))  # 3: fifty splits
(0.01, 3027)
>>> choose("loo")  # 4: leave-one-out
(0.01, 3000)

The four errors are those of the chosen candidate and so optimistic; `nested_cross_validate`
evaluates the choice on rows that it has not seen.
"""

from ._cross_validate import cross_val_predict, cross_val_score, cross_validate
from ._explain import Explanation, explain
from ._learning_curve import learning_curve
from ._many import ManyResult, cross_validate_many
from ._permutation import permutation_test_score
from ._prequential import PrequentialResult, prequential
from ._search.estimators import GridSearchCV, RandomizedSearchCV
from ._search.halving import HalvingGridSearchCV, HalvingRandomSearchCV
from ._search.nested import nested_cross_validate
from ._search.result import SearchResult
from ._splitters import holdout, monte_carlo
from ._threshold import TunedThresholdClassifierCV
from ._time_splitters import CombinatorialPurgedKFold, PurgedKFold, SlidingWindow
from ._validation_curve import validation_curve

__all__ = [
    "CombinatorialPurgedKFold",
    "Explanation",
    "GridSearchCV",
    "HalvingGridSearchCV",
    "HalvingRandomSearchCV",
    "ManyResult",
    "PrequentialResult",
    "PurgedKFold",
    "RandomizedSearchCV",
    "SearchResult",
    "SlidingWindow",
    "TunedThresholdClassifierCV",
    "cross_val_predict",
    "cross_val_score",
    "cross_validate",
    "cross_validate_many",
    "explain",
    "holdout",
    "learning_curve",
    "monte_carlo",
    "nested_cross_validate",
    "permutation_test_score",
    "prequential",
    "validation_curve",
]
