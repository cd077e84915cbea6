"""k-fold cross-validation for about the price of one fit.

Out-of-fold predictions for every sample, whatever the estimator; scores are computed from them.

>>> import onefold
>>> from sklearn.datasets import load_iris
>>> from sklearn.linear_model import LogisticRegression
>>> X, y = load_iris(return_X_y=True)
>>> result = onefold.cross_validate(LogisticRegression(max_iter=500), X, y, engine="refit")
>>> round(result.mean, 3)
0.973
"""

from ._core import __version__
from ._folds import Folds, Splits
from ._incremental import IncrementalLearner, IncrementalTags
from ._learning_curve import learning_curve
from ._permutation import permutation_test_score
from ._result import CVResult
from ._validation_curve import validation_curve
from .engines import RefitWarning
from .feature_selection import RFECV, SequentialFeatureSelector
from .libsvm import convert_libsvm, dump_libsvm, iter_libsvm, load_libsvm, open_libsvm
from .linear_model import ElasticNetCV, LassoCV
from .meta_estimators import (
    CalibratedClassifierCV,
    StackingClassifier,
    StackingRegressor,
    TunedThresholdClassifierCV,
)
from .model_selection import cross_val_predict, cross_val_score, cross_validate
from .search import GridSearchCV, RandomizedSearchCV, SearchResult, nested_cross_validate
from .splitters import Holdout, MonteCarlo
from .stats import compare
from .virtual import diagnostics, gaussian_process_predict, ridge_path, virtual_cv

__all__ = [
    "RFECV",
    "CVResult",
    "CalibratedClassifierCV",
    "ElasticNetCV",
    "Folds",
    "GridSearchCV",
    "Holdout",
    "IncrementalLearner",
    "IncrementalTags",
    "LassoCV",
    "MonteCarlo",
    "RandomizedSearchCV",
    "RefitWarning",
    "SearchResult",
    "SequentialFeatureSelector",
    "Splits",
    "StackingClassifier",
    "StackingRegressor",
    "TunedThresholdClassifierCV",
    "__version__",
    "compare",
    "convert_libsvm",
    "cross_val_predict",
    "cross_val_score",
    "cross_validate",
    "diagnostics",
    "dump_libsvm",
    "gaussian_process_predict",
    "iter_libsvm",
    "learning_curve",
    "load_libsvm",
    "nested_cross_validate",
    "open_libsvm",
    "permutation_test_score",
    "ridge_path",
    "validation_curve",
    "virtual_cv",
]
