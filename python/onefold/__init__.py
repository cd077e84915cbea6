"""k-fold cross-validation for about the price of one fit.

Every estimator has a held-out prediction for each sample; scores are computed from these.

>>> import onefold
>>> from sklearn.datasets import load_iris
>>> from sklearn.linear_model import LogisticRegression
>>> X, y = load_iris(return_X_y=True)
>>> result = onefold.cross_validate(LogisticRegression(max_iter=500), X, y, engine="refit")
>>> round(result.mean, 3)
0.973
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._core import __version__

if TYPE_CHECKING:
    from ._engines import RefitWarning
    from ._inputs.folds import Folds, Splits
    from .calibration import CalibratedClassifierCV
    from .ensemble import StackingClassifier, StackingRegressor
    from .feature_selection import RFECV, SequentialFeatureSelector
    from .learners._incremental import IncrementalLearner, IncrementalTags
    from .learners._one_row import OneRowClassifier, OneRowRegressor
    from .libsvm import convert_libsvm, dump_libsvm, iter_libsvm, load_libsvm, open_libsvm
    from .linear_model import ElasticNetCV, LassoCV, LogisticRegressionCV
    from .model_selection import (
        CombinatorialPurgedKFold,
        GridSearchCV,
        HalvingGridSearchCV,
        HalvingRandomSearchCV,
        PurgedKFold,
        RandomizedSearchCV,
        SearchResult,
        SlidingWindow,
        TunedThresholdClassifierCV,
        cross_val_predict,
        cross_val_score,
        cross_validate,
        cross_validate_many,
        explain,
        holdout,
        learning_curve,
        monte_carlo,
        nested_cross_validate,
        permutation_test_score,
        prequential,
        validation_curve,
    )
    from .result import CVResult
    from .stats import compare
    from .virtual import diagnostics, gaussian_process_predict, ridge_path, virtual_cv

__all__ = [
    "RFECV",
    "CVResult",
    "CalibratedClassifierCV",
    "CombinatorialPurgedKFold",
    "ElasticNetCV",
    "Folds",
    "GridSearchCV",
    "HalvingGridSearchCV",
    "HalvingRandomSearchCV",
    "IncrementalLearner",
    "IncrementalTags",
    "LassoCV",
    "LogisticRegressionCV",
    "OneRowClassifier",
    "OneRowRegressor",
    "PurgedKFold",
    "RandomizedSearchCV",
    "RefitWarning",
    "SearchResult",
    "SequentialFeatureSelector",
    "SlidingWindow",
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
    "cross_validate_many",
    "diagnostics",
    "dump_libsvm",
    "explain",
    "gaussian_process_predict",
    "holdout",
    "iter_libsvm",
    "learning_curve",
    "load_libsvm",
    "monte_carlo",
    "nested_cross_validate",
    "open_libsvm",
    "permutation_test_score",
    "prequential",
    "ridge_path",
    "validation_curve",
    "virtual_cv",
]

_EXPORTS = {
    "_engines": "RefitWarning",
    "_inputs.folds": "Folds Splits",
    "calibration": "CalibratedClassifierCV",
    "ensemble": "StackingClassifier StackingRegressor",
    "feature_selection": "RFECV SequentialFeatureSelector",
    "learners._incremental": "IncrementalLearner IncrementalTags",
    "learners._one_row": "OneRowClassifier OneRowRegressor",
    "libsvm": "convert_libsvm dump_libsvm iter_libsvm load_libsvm open_libsvm",
    "linear_model": "ElasticNetCV LassoCV LogisticRegressionCV",
    "model_selection": (
        "CombinatorialPurgedKFold PurgedKFold SlidingWindow "
        "GridSearchCV HalvingGridSearchCV HalvingRandomSearchCV RandomizedSearchCV "
        "SearchResult TunedThresholdClassifierCV "
        "cross_val_predict cross_val_score cross_validate cross_validate_many explain holdout "
        "learning_curve monte_carlo nested_cross_validate permutation_test_score prequential "
        "validation_curve"
    ),
    "result": "CVResult",
    "stats": "compare",
    "virtual": "diagnostics gaussian_process_predict ridge_path virtual_cv",
}
"""Public names by module, each imported on first use: the command line starts without them."""

_MODULE_OF = {name: module for module, names in _EXPORTS.items() for name in names.split()}

_PACKAGES = [
    "calibration",
    "distributed",
    "ensemble",
    "feature_selection",
    "learners",
    "libsvm",
    "linear_model",
    "model_selection",
    "plotting",
    "report",
    "result",
    "stats",
    "svm",
    "testing",
    "virtual",
]
"""Public modules, which are attributes without an import of their own."""

if not TYPE_CHECKING:  # type checkers must see a misspelt name

    def __getattr__(name: str) -> Any:
        """Import a public name or module on first use."""
        if name in _PACKAGES:
            return import_module(f".{name}", __name__)
        if name not in _MODULE_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(f".{_MODULE_OF[name]}", __name__), name)
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        """Return the public names."""
        return sorted({*globals(), *__all__, *_PACKAGES})
