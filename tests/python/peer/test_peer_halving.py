"""scikit-learn's tests of its halving searches, on ours."""

from peers import adopt
from sklearn.experimental import enable_halving_search_cv  # noqa: F401

import onefold

SEARCHES = {
    name: getattr(onefold, name) for name in ("HalvingGridSearchCV", "HalvingRandomSearchCV")
}
globals().update(
    adopt(
        "sklearn.model_selection.tests.test_successive_halving",
        {"sklearn.model_selection": SEARCHES},
    )
)
