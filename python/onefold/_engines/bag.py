"""Leave-one-out of bootstrap ensembles from one large ensemble, on request.

# Problem
Leave-one-out of an ensemble of B members takes n fits of B members each.

# Method
A bootstrap sample of m draws from all n rows that happens to miss row i is a bootstrap sample of m
draws from the other n − 1 rows. So the members that miss row i are members of an ensemble that was
fitted without it. Members are added until every row has B that miss it, and a row is answered by
the first B: as many as a refit has, where out-of-bag predictions have about B/e, and are worse for
it. Draws are as many as a refit makes from n − 1 rows.

The answers of one row have the distribution of those of a refit. Members are shared between rows,
so two rows are not independent given the data, as they are not with one ``random_state`` either.

# Cost
A row is missed with a probability of about 1/e, so e·B members and a few more: 2.7 to 4 fits.

# References
Breiman, "Out-of-bag estimation" (1996); Kim, Xu and Barber, "Predictive inference is free with the
jackknife+-after-bootstrap" (2020): the jackknife+ of the models of the folds, which share members,
is their method.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier

from .._utils.estimator_class import known_class
from .._utils.progress import reporter
from .base import Candidate, Outcome
from .engine import Engine
from .fold_models import FoldModels
from .forest_params import BAGS, FORESTS, n_draws, tree_of
from .spec import Needs, Spec
from .status import Status
from .task import Problem, Task

__all__ = ["BAG"]

Floats = NDArray[np.float64]


BAG = Engine(
    name="bag",
    exact="in distribution",
    cost="3 to 4 fits, leave-one-out only",
    responses=frozenset({"predict", "predict_proba"}),
    returns=frozenset({"return_estimator"}),
    needs_partition=True,
    warns_of_refits=False,
    holds_responses=False,
    takes_any_estimator=True,  # on request only: no note names it
    unknown="{name} is no forest and no bag of scikit-learn",
)
"""Leave-one-out of forests and bags from members that miss a row, on request."""


@BAG.supports(*FORESTS, *BAGS)
def bootstrap_ensemble(view: Candidate, task: Task) -> Spec | str:
    """Ensembles with bootstrap samples, and leave-one-out."""
    estimator = view.estimator
    if estimator is not view.final:
        return "a scaler before it would see the row that is held out"
    needs = Needs(weights="none", returns_estimators=True, others=_unmet)
    reason = "it draws other samples than refits, of the same law"
    return Spec(view, solve, needs=needs, on_request=reason)


def _unmet(spec: Spec, task: Task) -> str | None:
    return (
        task.why_not_scored
        or _why_not_problem(task.problem, is_classifier(spec.estimator))
        or _why_not_parameters(spec.estimator)
        or ("it passes nothing to fit but rows and targets" if task.fit_params else None)
    )


def solve(specs: Sequence[Spec], task: Task) -> Iterator[tuple[int, Outcome]]:
    """One ensemble after the other."""
    for position, spec in enumerate(specs):
        with reporter(task.progress, unit="rows") as report:
            members = _Members(spec.estimator, task)
            while not members.suffice:
                members.grow()
                if report is not None:
                    report(members.n_answered, task.data.n_samples)
        yield position, members.outcome()


def _why_not_problem(problem: Problem, has_classes: bool) -> str | None:
    data = problem.data
    if len(problem.folds) != data.n_samples:
        return "it is for leave-one-out only: cv='loo'"
    if data.y is None or sp.issparse(data.y) or np.ndim(data.y) != 1:
        return "it takes one target for each row"
    return problem.missing_class() if has_classes else None


def _why_not_parameters(estimator: Any) -> str | None:
    if not estimator.bootstrap:
        return "bootstrap=False: all members see all rows"
    if estimator.warm_start or estimator.oob_score:
        return "warm_start and oob_score are not covered"
    member = tree_of(estimator)
    shares = ("min_samples_leaf", "min_samples_split")
    if any(isinstance(getattr(member, name, 1), float) for name in shares):
        return "sizes of nodes as a share of the rows are not covered"
    if getattr(member, "class_weight", None) == "balanced":
        return "class_weight='balanced' depends on all rows"
    return None


@dataclass(frozen=True)
class _Responses:
    """What a member answers, as columns that are added up over members."""

    is_bag: bool
    n_classes: int | None

    def of(self, member: Any, features: Any, X: Any) -> Floats:
        """Probabilities, votes, or numbers: row × column."""
        if self.is_bag:
            X = X[:, features]
        if self.n_classes is None:
            return np.asarray(member.predict(X), dtype=np.float64)[:, None]
        outputs = np.zeros((X.shape[0], self.n_classes))
        if hasattr(member, "predict_proba"):
            outputs[:, np.asarray(member.classes_, dtype=np.intp)] = member.predict_proba(X)
        else:
            outputs[np.arange(len(outputs)), member.predict(X).astype(np.intp)] = 1.0
        return outputs


class _FoldEnsembles(FoldModels):
    """For each fold, the ensemble of the members that answer for its row.

    Parameters
    ----------
    ensemble : fitted ensemble
        With all members, which the ensembles share.
    members : array of shape (n_folds, n_members)
        The positions of the members of each fold.
    responses : _Responses
    classes : array or None
    """

    def __init__(
        self, ensemble: Any, members: NDArray[np.intp], responses: _Responses, classes: Any
    ) -> None:
        self._ensemble = ensemble
        self._members = members
        self._responses = responses
        self._classes = classes
        super().__init__(self._of_fold(chosen) for chosen in members)

    def _of_fold(self, chosen: NDArray[np.intp]) -> Any:
        model = copy.copy(self._ensemble)
        for name in ("estimators_", "estimators_features_"):
            if hasattr(model, name):
                of_all = getattr(model, name)
                setattr(model, name, [of_all[number] for number in chosen])
        return model

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict new rows by the ensemble of every fold; each member predicts once.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_rows, n_features)

        Returns
        -------
        predictions : ndarray of shape (n_folds, n_rows)
        """
        rows: Any = X if sp.issparse(X) else np.asarray(X)
        features = _features_of(self._ensemble)
        n_columns = self._responses.n_classes or 1
        sums: Floats = np.zeros((len(self), rows.shape[0], n_columns))
        for number, member in enumerate(self._ensemble.estimators_):
            folds = np.flatnonzero((self._members == number).any(axis=1))
            sums[folds] += self._responses.of(member, features[number], rows)
        means = sums / self._members.shape[1]
        return means[:, :, 0] if self._classes is None else _labels(means, self._classes)


def _features_of(ensemble: Any) -> Sequence[Any]:
    """The features that each member sees; None for all."""
    features = getattr(ensemble, "estimators_features_", None)
    return [None] * len(ensemble.estimators_) if features is None else list(features)


def _labels(means: Floats, classes: Any) -> NDArray[Any]:
    """The classes of the largest means, which are along the last axis."""
    labels: NDArray[Any] = np.asarray(classes).take(means.argmax(axis=-1), axis=0)
    return labels


class _Members:
    """A growing ensemble, and the sums of what members answer for the rows that they miss."""

    def __init__(self, estimator: Any, task: Task) -> None:
        n_samples = task.data.n_samples
        self._task = task
        self._estimator = estimator
        self._n_members = int(estimator.n_estimators)
        self._ensemble = clone(estimator).set_params(
            warm_start=True,
            n_estimators=0,
            max_samples=n_draws(estimator, [n_samples - 1])[0],
        )
        if task.n_jobs is not None:
            self._ensemble.set_params(n_jobs=task.n_jobs)
        self._rows: Any = task.data.X if sp.issparse(task.data.X) else np.asarray(task.data.X)
        classes = task.data.classes[1] if is_classifier(estimator) else None
        self._classes = classes
        n_columns = 1 if classes is None else len(classes)
        self._responses = _Responses(
            known_class(estimator, BAGS) is not None, None if classes is None else n_columns
        )
        self._sums: Floats = np.zeros((n_samples, n_columns))
        self._n_missed = np.zeros(n_samples, dtype=np.intp)
        self._members = np.zeros((n_samples, self._n_members), dtype=np.intp)
        self._n_grown = 0

    @property
    def suffice(self) -> bool:
        """Whether every row has enough members that miss it."""
        return bool(self._n_missed.min() >= self._n_members)

    @property
    def n_answered(self) -> int:
        """The number of rows that have enough members."""
        return int(np.count_nonzero(self._n_missed >= self._n_members))

    def grow(self) -> None:
        """Add the members that the row with fewest lacks on average."""
        lacking = self._n_members - int(self._n_missed.min())
        ensemble, first = self._ensemble, self._n_grown
        self._n_grown += math.ceil(math.e * lacking)
        ensemble.set_params(n_estimators=self._n_grown)
        ensemble.fit(self._rows, self._task.data.y)
        features = _features_of(ensemble)
        # A bag knows the samples of the members that it has added last, a forest those of all.
        samples = ensemble.estimators_samples_[first - self._n_grown :]
        for number, sample in enumerate(samples, start=first):
            is_missed = self._n_missed < self._n_members
            is_missed[sample] = False
            rows = np.flatnonzero(is_missed)
            if len(rows):
                member = ensemble.estimators_[number]
                self._sums[rows] += self._responses.of(member, features[number], self._rows[rows])
                self._members[rows, self._n_missed[rows]] = number
                self._n_missed[rows] += 1

    def outcome(self) -> Outcome:
        """The answers in test order."""
        task = self._task
        folds, n_samples = task.folds, task.data.n_samples
        needs_models = task.return_estimator or task.return_train_score
        means = (self._sums / self._n_members)[np.asarray(folds.rows)]
        responses: dict[str, NDArray[Any]] = {"predict": means[:, 0]}
        if self._classes is not None:
            responses = {"predict": _labels(means, self._classes), "predict_proba": means}
        n_fits = math.ceil(self._n_grown / self._n_members)
        return Outcome(
            responses,
            classes=None if self._classes is None else np.asarray(self._classes),
            cost={
                "fits": n_fits,
                "rows_fed": n_fits * (n_samples - 1),
                "rows_evaluated": n_samples,
            },
            estimators=self._fold_models() if needs_models else None,
            status=Status("bag", is_in_distribution=True),
        )

    def _fold_models(self) -> _FoldEnsembles:
        asked = self._estimator
        ensemble = copy.copy(self._ensemble)
        for name in ("warm_start", "max_samples", "n_estimators", "n_jobs"):
            setattr(ensemble, name, getattr(asked, name))
        members = self._members[np.asarray(self._task.folds.rows)]
        return _FoldEnsembles(ensemble, members, self._responses, self._classes)
