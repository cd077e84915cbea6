"""The engines of the core without the facade around them.

A pass over the data is `Learner.update`, and nothing is checked, converted or scored on either side
of a comparison with it.
"""

from sklearn.base import clone

from onefold import _core
from onefold._engines.native import TreeOptions
from onefold._inputs.data import as_rows

__all__ = ["Native"]


class Native:
    """A native learner, or several candidates of one class, with their examples."""

    def __init__(self, estimator, X, y, *others):
        self.estimators = [clone(each) for each in (estimator, *others)]
        self.rows = as_rows(X)
        targets, self.n_targets = self.estimators[0]._targets(y, self.rows.shape[0])
        self.examples = (self.rows, targets, self.n_targets, None)

    def learners(self):
        """Return untrained learners, one per candidate."""
        shape = self.rows.shape[1], self.n_targets
        return [estimator._make_learner(*shape) for estimator in self.estimators]

    def one_pass(self):
        """Train the first candidate on every row once, in order."""
        learner = self.learners()[0]
        learner.update(self.examples)
        return learner

    def folds(self, k):
        """Return k contiguous folds of the rows."""
        return _core.Folds.contiguous(self.rows.shape[0], k)

    def tree(self, folds, **options):
        """Cross-validate by TreeCV; return the counters of its work."""
        return self.run("tree", folds, **options)[1]

    def refit(self, folds, **options):
        """Cross-validate by the standard method; return the counters of its work."""
        return self.run("refit", folds, **options)[1]

    def run(self, engine, folds, *, placement="given", order="fixed", n_jobs=1, strategy="auto"):
        """Return the outputs of every candidate, and the counters: shared work is the first's."""
        options = TreeOptions(
            strategy,
            placement_seed=None if placement == "given" else 1,
            order_seed=None if order == "fixed" else 1,
            shuffles_once=False,
            n_jobs=n_jobs,
        )
        found = _core.cross_validate(
            engine, self.learners(), self.examples, folds, options, n_jobs=n_jobs
        )
        return [one.outputs for one in found], found[0].cost
