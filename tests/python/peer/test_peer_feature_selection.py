"""scikit-learn's tests of feature selection by cross-validation, on ours."""

from peers import adopt

import onefold

SELECTORS = {name: getattr(onefold, name) for name in ("RFECV", "SequentialFeatureSelector")}
for _module in ("test_rfe", "test_sequential"):
    globals().update(
        adopt(
            f"sklearn.feature_selection.tests.{_module}", {"sklearn.feature_selection": SELECTORS}
        )
    )
