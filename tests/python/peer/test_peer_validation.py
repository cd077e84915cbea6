"""scikit-learn's tests of cross-validation, on our functions."""

from peers import adopt

import onefold

NAMES = (
    "GridSearchCV",
    "cross_val_predict",
    "cross_val_score",
    "cross_validate",
    "learning_curve",
    "permutation_test_score",
    "validation_curve",
)
FUNCTIONS = {name: getattr(onefold, name) for name in NAMES}
globals().update(
    adopt("sklearn.model_selection.tests.test_validation", {"sklearn.model_selection": FUNCTIONS})
)
