"""scikit-learn's tests of stacking, on our classes."""

from peers import adopt

import onefold

CLASSES = {name: getattr(onefold, name) for name in ("StackingClassifier", "StackingRegressor")}
globals().update(adopt("sklearn.ensemble.tests.test_stacking", {"sklearn.ensemble": CLASSES}))
