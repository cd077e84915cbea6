"""Model selection: candidates, folds, a choice, and a fit to all rows.

Algorithms 1 to 4 of B. Recht's notes *Cross validation and friends* are a `GridSearchCV` with
``cv=Holdout(…)``, ``cv=10``, ``cv=MonteCarlo(…)`` and ``cv="loo"``; `onefold.reference.selection`
spells them out.
"""

from .comparison import Comparison
from .estimators import GridSearchCV, RandomizedSearchCV
from .nested import nested_cross_validate
from .result import SearchResult

__all__ = [
    "Comparison",
    "GridSearchCV",
    "RandomizedSearchCV",
    "SearchResult",
    "nested_cross_validate",
]
