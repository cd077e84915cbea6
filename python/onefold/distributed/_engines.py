"""The table of the engines of a cluster: which estimators each supports, and with what options."""

from __future__ import annotations

from sklearn.linear_model import LinearRegression, Ridge

from .._engines.base import Candidate
from .._engines.callback import why_not_one_pass
from .._engines.engine import Engine
from .._engines.file_least_squares import parse
from .._engines.options import one_of
from .._engines.registry import REFIT as LOCAL_REFIT
from .._engines.registry import SEEDED as LOCAL_SEEDED
from .._engines.spec import Needs, Spec
from .._engines.tags import tags_of
from .._engines.task import Task
from ._candidates import ClusterTree
from ._incremental import MAX_CANDIDATES_PER_RUN, family_of, why_not_partial_fit
from ._least_squares import ClusterLeastSquares
from ._merge import ClusterMerge
from ._refits import ClusterRefits
from ._seeded import ClusterSeeded

__all__ = ["ENGINES"]

SENDS_ROWS = "sends all rows to every worker"

MERGE = Engine(
    name="merge",
    exact="exactly",
    cost="every row is learnt once",
    max_together=MAX_CANDIDATES_PER_RUN,
    fit=ClusterMerge.fit_spec,
)
VIRTUAL = Engine(
    name="virtual",
    exact="exactly",
    cost="one factorisation",
    unknown="{name} is neither Ridge nor LinearRegression",
    fit=ClusterLeastSquares.fit_spec,
)
TREE = Engine(
    name="tree",
    exact="exactly",
    cost="at most log2(2k) fits",
    options={
        "placement": one_of("random", "given"),
        "order": one_of("random", "fixed"),
    },
    max_together=MAX_CANDIDATES_PER_RUN,
    fit=ClusterTree.fit_spec,
)
SEEDED = Engine(
    name="seeded",
    exact=LOCAL_SEEDED.exact,
    cost=LOCAL_SEEDED.cost,
    options=LOCAL_SEEDED.options,
    responses=LOCAL_SEEDED.responses,
    unknown="{name} is not SVC or SVR",
    holds_responses=False,
    fit=ClusterSeeded.fit_spec,
)
REFIT = Engine(
    name="refit",
    exact=LOCAL_REFIT.exact,
    cost=LOCAL_REFIT.cost,
    takes_any_estimator=True,
    holds_responses=False,
    fit=ClusterRefits.fit_spec,
)

ENGINES = (MERGE, VIRTUAL, SEEDED, TREE, REFIT)
"""In the order in which ``engine="auto"`` asks them."""


@MERGE.supports(where=lambda view: True)
def models_that_add_up(view: Candidate, task: Task) -> Spec | str:
    """Native learners and estimators in Python whose models can be merged."""
    learner = view.learner
    if learner is not None and learner._is_mergeable:
        return Spec(view, ClusterMerge.solve, family=family_of(view))
    if learner is not None or not tags_of(view.estimator).mergeable:
        return f"models of {view.name} cannot be merged"
    on_request = why_not_one_pass(view.estimator, task.problem)
    spec = Spec(view, ClusterMerge.solve, family=family_of(view), on_request=on_request)
    return why_not_partial_fit(view.estimator, task.data.X) or spec


@VIRTUAL.supports(Ridge, LinearRegression)
def least_squares(view: Candidate, task: Task) -> Spec | str:
    """Least squares without constraints."""
    model = parse(view.final)
    if isinstance(model, str):
        return model
    return Spec(
        view,
        ClusterLeastSquares.solve,
        family=model.family(view.final),
        needs=Needs(weights="any", no_scaler="a pipeline is fitted to rows in memory"),
    )


@TREE.supports(where=lambda view: True)
def incremental(view: Candidate, task: Task) -> Spec | str:
    """Native learners, and estimators with ``partial_fit``."""
    if view.learner is None:
        reason = why_not_partial_fit(view.estimator, task.data.X)
        if reason is not None:
            return reason
    return Spec(view, ClusterTree.solve, family=family_of(view))


@SEEDED.supports(where=LOCAL_SEEDED.serves)
def machine(view: Candidate, task: Task) -> Spec | str:
    """Support vector machines that the local engine takes, alone or behind a scaler."""
    # The scaler is fitted to every training set, which needs the rows: by the workers.
    spec = LOCAL_SEEDED.spec_of(Candidate(view.final), task)
    if isinstance(spec, str):
        return spec
    return Spec(view, ClusterSeeded.solve, family="machines", on_request=SENDS_ROWS)


@REFIT.supports(where=lambda view: True)
def any_estimator(view: Candidate, task: Task) -> Spec | str:
    """Any estimator."""
    return Spec(view, ClusterRefits.solve, family="refits", validates=False, on_request=SENDS_ROWS)
