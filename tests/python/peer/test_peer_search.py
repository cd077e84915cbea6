"""scikit-learn's tests of its searches, on ours."""

from peers import adopt

import onefold

SEARCHES = {name: getattr(onefold, name) for name in ("GridSearchCV", "RandomizedSearchCV")}
globals().update(
    adopt("sklearn.model_selection.tests.test_search", {"sklearn.model_selection": SEARCHES})
)
