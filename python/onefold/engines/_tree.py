"""TreeCV: k-fold and leave-one-out of incremental learners in at most log2(2k) trainings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from sklearn.linear_model import Perceptron, SGDClassifier, SGDRegressor
from sklearn.naive_bayes import BernoulliNB, CategoricalNB, ComplementNB, MultinomialNB

from .. import _core
from .._folds import Folds
from .._progress import part
from .._scoring import RESPONSES
from . import _native as native
from ._base import Outcome, Task, Together, takes, why_not_scored
from ._callback_tree import callback_tree
from ._options import Check, one_of, whole

__all__ = ["Tree"]


class Tree(Together):
    """TreeCV of native learners, and of any estimator that has ``partial_fit``.

    A fold is answered by a model that has learnt the folds beside it last, which flatters learners
    that mind the order where neighbouring rows are alike: shuffle such rows, or their folds.

    Options
    -------
    order : {"fixed", "random"}
        Feed the rows of a training phase as they come, or in a random order.
    strategy : {"auto", "copy", "revert"}
        How a native learner comes back to the model of a node; the result is the same.
    batch_size : int
        The most rows that a single ``partial_fit`` is given; all of a training phase by default.
    backend : {"threads", "processes"}
        Where the ``n_jobs`` of estimators in Python run. Threads share everything, but wait for
        each other while Python runs; processes do not. The result is the same.
    """

    name = "tree"
    options: Mapping[str, Check] = {
        "strategy": one_of("auto", "copy", "revert"),
        "order": native.ORDER,
        "batch_size": whole,
        "backend": one_of("threads", "processes"),
    }
    responses = frozenset(RESPONSES)

    def why_not(self, task: Task) -> str | None:
        """It needs folds, and an estimator that can be given more rows."""
        if not isinstance(task.folds, Folds):
            return "the test sets are not a partition"
        if _runs_natively(task):
            return None
        name = type(task.estimator).__name__
        if native.is_native(task):
            return "native learners have no batch_size and no backend"
        if not hasattr(task.estimator, "partial_fit"):
            return f"{name} has no partial_fit"
        if task.fit_params:
            return "it has no fit to pass params to"
        if task.weights is not None and not takes(task.estimator.partial_fit, "sample_weight"):
            return f"{name}.partial_fit takes no sample_weight"
        if "strategy" in task.options:
            return f"{name} can only be copied, so there is no strategy"
        return None

    def why_not_auto(self, task: Task) -> str | None:
        """Feeding rows once must be what ``fit`` does."""
        if _runs_natively(task):
            return why_not_scored(task)
        if native.learner_of(task) is not None or isinstance(task.estimator, _EXACT):
            return None
        name = type(task.estimator).__name__
        if isinstance(task.estimator, _SINGLE_PASS_ON_REQUEST):
            if task.estimator.max_iter == 1:
                return None
            return f"{name}.fit makes up to {task.estimator.max_iter} passes, the tree makes one"
        return f"{name}.fit may do more than one pass of partial_fit"

    def run_many(self, tasks: Sequence[Task]) -> Iterator[tuple[int, Outcome]]:
        """Run native learners together, estimators in Python one after the other."""
        natives = [place for place, task in enumerate(tasks) if _runs_natively(task)]
        others = [place for place, task in enumerate(tasks) if not _runs_natively(task)]
        n_parts = bool(natives) + len(others)
        if natives:
            shared = [_with_part(tasks[place], 0, n_parts) for place in natives]
            for number, outcome in native.run_many(shared, _core.tree_cv):
                yield natives[number], outcome
        for number, place in enumerate(others, bool(natives)):
            yield place, self._run_callback(_with_part(tasks[place], number, n_parts))

    def _run_callback(self, task: Task) -> Outcome:
        assert isinstance(task.folds, Folds)  # why_not saw to it
        outcome = callback_tree(task, task.folds)
        reason = self.why_not_auto(task)
        if reason is not None:
            outcome.notes.append(f"single-pass training was evaluated: {reason}")
        return outcome


def _with_part(task: Task, number: int, n_parts: int) -> Task:
    return task if n_parts == 1 else replace(task, progress=part(task.progress, number, n_parts))


_EXACT = (BernoulliNB, CategoricalNB, ComplementNB, MultinomialNB)
"""Estimators that add up counts: the order and the batches do not matter."""

_SINGLE_PASS_ON_REQUEST = (Perceptron, SGDClassifier, SGDRegressor)


def _runs_natively(task: Task) -> bool:
    """Batches and processes are for estimators in Python, even if they have a native twin."""
    return native.learner_of(task) is not None and not {"batch_size", "backend"} & set(task.options)
