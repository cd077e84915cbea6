"""Cross-validate a learner of your own, written in Python.

Any estimator with ``partial_fit`` can be trained incrementally along the tree. Its
``__onefold_tags__`` declare what ``engine="auto"`` may do: here, one pass over the rows is a fit,
the order of rows does not matter, and two models can be merged into one. Ten folds therefore take
one pass over the rows.

Run it with ``python examples/own_learner.py``.
"""

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.datasets import load_diabetes

import onefold
from onefold.testing import check_learner


class BinnedMean(RegressorMixin, BaseEstimator):
    """Predict the mean target of the rows in the same bin of one feature."""

    def __init__(self, feature=0, edges=(0.0,)):
        self.feature = feature
        self.edges = edges

    def fit(self, X, y):
        """Forget everything, then learn all rows."""
        self._reset()
        return self.partial_fit(X, y)

    def partial_fit(self, X, y):
        """Learn more rows: counts and sums of their bins."""
        if not hasattr(self, "counts_"):
            self._reset()
        bins, size = self._bins(X), len(self.counts_)
        self.counts_ += np.bincount(bins, minlength=size)
        self.sums_ += np.bincount(bins, weights=y, minlength=size)
        return self

    def merge(self, other):
        """Learn what another model has learnt from other rows."""
        self.counts_ += other.counts_
        self.sums_ += other.sums_

    def predict(self, X):
        """Return the mean of the bin, or that of all rows where the bin is empty."""
        overall = self.sums_.sum() / max(self.counts_.sum(), 1)
        means = np.full(len(self.counts_), overall)
        np.divide(self.sums_, self.counts_, out=means, where=self.counts_ > 0)
        return means[self._bins(X)]

    def __onefold_tags__(self):
        return onefold.IncrementalTags(one_pass=True, depends_on_order=False, mergeable=True)

    def _reset(self):
        self.counts_, self.sums_ = np.zeros(len(self.edges) + 1), np.zeros(len(self.edges) + 1)

    def _bins(self, X):
        return np.searchsorted(self.edges, np.asarray(X)[:, self.feature])


X, y = load_diabetes(return_X_y=True)
learner = BinnedMean(feature=2, edges=tuple(np.linspace(-0.08, 0.12, 9)))

check_learner(learner, X, y)  # an error would say which of the tags is not true
merged = onefold.cross_validate(learner, X, y, cv="loo", scoring="neg_mean_squared_error")
print(merged)

refitted = onefold.cross_validate(
    learner, X, y, cv="loo", scoring="neg_mean_squared_error", engine="refit"
)
difference = np.abs(merged.predictions - refitted.predictions).max()
print(f"\nRefits feed {refitted.cost['rows_fed']:,} rows; predictions differ by {difference:.1g}")

search = onefold.GridSearchCV(learner, {"feature": list(range(X.shape[1]))}, cv=10).fit(X, y)
print(f"\nThe most useful feature is number {search.best_params_['feature']}:")
print("\n".join(repr(search.compare()).splitlines()[:4]))
