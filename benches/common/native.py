"""The engines of the core without the facade around them.

A pass over the data is `Learner.learn`, and nothing is checked, converted or scored on either side
of a comparison with it.
"""

from sklearn.base import clone

from onefold import _core
from onefold._data import as_rows
from onefold.engines._native import TreeOptions

__all__ = ["Native"]


class Native:
    """A native learner with the examples it is to learn."""

    def __init__(self, estimator, X, y):
        self.estimator = clone(estimator)
        self.rows = as_rows(X)
        targets, self.n_targets = self.estimator._targets(y, self.rows.shape[0])
        self.examples = (self.rows, targets, self.n_targets, None)

    def learner(self):
        """Return a learner that has learnt nothing."""
        return self.estimator._new_learner(self.rows.shape[1], self.n_targets)

    def one_pass(self):
        """Learn every row once, in order."""
        learner = self.learner()
        learner.update(self.examples)
        return learner

    def folds(self, k):
        """Return k contiguous folds of the rows."""
        return _core.Folds.contiguous(self.rows.shape[0], k)

    def tree(self, folds, *, order="fixed", n_jobs=1):
        """Cross-validate by TreeCV; return the counters of its work."""
        return self._run("tree", folds, order, n_jobs)

    def refit(self, folds, *, order="fixed", n_jobs=1):
        """Cross-validate by the standard method; return the counters of its work."""
        return self._run("refit", folds, order, n_jobs)

    def _run(self, engine, folds, order, n_jobs):
        options = TreeOptions("auto", None if order == "fixed" else 1, n_jobs)
        learners = [self.learner()]
        [(_, cost, _)] = _core.incremental_cv(engine, learners, self.examples, folds, options)
        return cost
