"""The choice of an engine for each estimator: the first that estimates what refits do, as fast."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import scipy.sparse as sp
from sklearn.naive_bayes import ComplementNB, GaussianNB
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.utils import get_tags

from .._inputs.files import FILE_OPTIONS
from .._inputs.routing import is_routing
from .._inputs.row_sources import RowSource
from .._sklearn_compat import callbacks_of
from .._utils.estimator_class import known_class
from .base import Candidate, RowsNeedMemoryError, flat_steps
from .cost_estimates import estimate_of, is_slower_per_fold, n_together, why_slower
from .early_stopping import check_eval_split, warn_of_eval_set
from .engine import Engine
from .fold_steps import FOLD_STEPS, Steps, fold_steps_spec
from .hoisted import HOISTED, Rest, hoisted_spec
from .mapped import MAPPED, mapped, mapped_spec
from .registry import engine_named, engines_for
from .spec import Estimate, LacksEstimators, Spec
from .steps import needs_no_fit, transformed
from .task import Problem, Task
from .train_scores import with_estimators

__all__ = [
    "Choice",
    "Reason",
    "RefitWarning",
    "Rejection",
    "choose",
    "fitted_steps",
    "returned",
    "steps_per_fold",
    "why_not",
]


class RefitWarning(UserWarning):
    """An estimator that an engine could serve is fitted once per fold: the message says why."""


@dataclass(frozen=True)
class Rejection:
    """Why an engine that is made for a kind of estimator was not chosen."""

    engine: str
    reason: str
    on_request: bool = False
    """Whether the engine can be asked for by name: it would answer another question."""
    is_avoidable: bool = True
    """Whether the caller can do something about it."""
    estimate: Estimate | None = None
    """What the engine and refits would cost, where that is the reason."""

    @property
    def advice(self) -> str:
        """What the caller can do."""
        if self.on_request:
            return f"engine={self.engine!r} uses it anyway, engine='refit' silences this warning"
        return "engine='refit' silences this warning"


@dataclass(frozen=True)
class Choice:
    """The engine of one candidate, and its spec."""

    engine: Engine
    """The engine, or what runs the steps of a pipeline before it."""
    spec: Spec
    rejection: Rejection | None = None
    """Why an engine for this kind of estimator was not chosen, where there is one."""

    @property
    def name(self) -> str:
        """The name of the engine."""
        return self.spec.engine_name or self.engine.name


@dataclass(frozen=True)
class _NoChoice:
    """No engine applies."""

    reasons: dict[str, str]
    """Why, by the name of the engine."""
    rejection: Rejection | None
    """That of the first engine that is made for such estimators."""


def choose(name: str, estimators: Sequence[Any], task: Task) -> list[Choice]:
    """Choose the engine of each estimator.

    Parameters
    ----------
    name : str
        The engine, or ``"auto"`` for the first that applies.
    estimators : sequence of estimators
        The candidates of a search.
    task : Task

    Returns
    -------
    choices : list of Choice
        One for each estimator.
    """
    _check(name, estimators, task)
    sizes = n_together(estimators)
    choosers = {size: _Chooser(name, replace(task, n_candidates=size)) for size in set(sizes)}
    pairs = zip(estimators, sizes, strict=True)
    return [choosers[size].choose(Candidate(estimator)) for estimator, size in pairs]


class Reason(NamedTuple):
    """Why an engine is not chosen; without a text it may be."""

    text: str
    cannot: bool
    """Whether it cannot be asked for by name either."""


def why_not(estimator: Any, task: Task) -> dict[str, Reason]:
    """Why ``"auto"`` takes no engine, by name; for the last step if none takes the pipeline."""
    _check("auto", [estimator], task)
    chooser = _Chooser("auto", task)
    reasons = chooser.reasons(Candidate(estimator))
    *others, last = flat_steps(estimator)
    if others and all(reason.text for name, reason in reasons.items() if name != "refit"):
        return chooser.reasons(Candidate(last))
    return reasons


def _check(name: str, estimators: Sequence[Any], task: Task) -> None:
    """Raise an error for an engine, an option or a kernel matrix that there cannot be."""
    engines = engines_for(task.data.X)
    _check_options(task.options, engines)
    if name != "auto":
        engine_named(name, engines)
    for estimator in estimators:
        _check_pairwise(estimator, task.data.X)
        check_eval_split(estimator, task)
    warn_of_eval_set(task)


def _check_options(options: dict[str, Any], engines: Sequence[Engine]) -> None:
    """Raise an error for an unknown option or a bad value, whichever engine it is for."""
    checks = {name: check for engine in engines for name, check in engine.options.items()}
    for name, value in options.items():
        if name in FILE_OPTIONS and name not in checks:
            raise ValueError(
                f"the option {name!r} is for rows in a file, and X is none; the memory for kernel "
                "values is kernel_mb"
            )
        if name not in checks:
            raise ValueError(f"there is no option {name!r}; engines have {', '.join(checks)}")
        checks[name](name, value)


def _check_pairwise(estimator: Any, X: Any) -> None:
    """Raise an error unless X is a square matrix, for an estimator that takes one as its kernel."""
    if not _takes_kernel(estimator):
        return
    if not hasattr(X, "shape"):
        raise ValueError(
            f"X must be an array or a sparse matrix, since {type(estimator).__name__} takes a "
            f"precomputed kernel or precomputed distances; got a {type(X).__name__}"
        )
    if X.shape[0] != X.shape[1]:
        raise ValueError(
            f"X must be square, since {type(estimator).__name__} takes a precomputed kernel or "
            f"precomputed distances; got shape {X.shape}"
        )


def _why_not_call(engine: Engine, task: Task) -> str | None:
    """Why an engine is not for a call, whatever the estimator, or None."""
    unknown = set(task.options) - set(engine.options)
    if unknown:
        return f"it has no option {', '.join(sorted(unknown))}"
    if task.required is not None and task.required not in engine.responses:
        return f"it gives no {task.required}"
    if isinstance(task.data.X, RowSource):
        reason = _why_not_source(engine, task.data.X, task)
        if reason is not None:
            return reason
    has = engine.returns
    if "return_estimator" in has:
        has |= {"return_train_score"}
    if returned(task) - has:
        return f"it has no fitted estimators, which {_asked(task)} needs"
    if task.problem.maps is not None and not engine.takes_maps:
        return "it takes the rows of a fold, and not a map of columns"
    if engine.needs_partition and task.problem.partitions is None and not engine.takes_growing_sets:
        return "the test sets are not a partition"
    return None


def _why_not_source(engine: Engine, rows: RowSource, task: Task) -> str | None:
    """Why an engine does not take rows on disk or on a cluster, or None."""
    if rows.engines is None and not engine.takes_files:
        return "it needs all rows in memory, and those of this file exceed memory_mb"
    if not task.problem.is_partition:
        return f"of rows {rows.where} it needs a single partition"
    if returned(task) or task.options.get("check"):
        return f"of rows {rows.where} it has no fitted estimators, train scores or check"
    return task.why_not_scored


def _why_own_fit(view: Candidate, task: Task) -> str | None:
    """Why an estimator must be fitted by its own ``fit``, whatever it is, or None."""
    estimator = view.estimator
    if task.required is not None and not hasattr(estimator, task.required):
        return f"{view.name} has no {task.required} before it is fitted"
    if _needs_dense_rows(view, task):
        return f"{view.name} takes dense rows only"
    follows = task.propagates_callbacks and hasattr(estimator, "set_callbacks")
    if follows or callbacks_of(estimator):
        return f"callbacks follow the fit of {view.name}"
    return None


def _needs_dense_rows(view: Candidate, task: Task) -> bool:
    """Whether scikit-learn refuses sparse rows that an engine could take."""
    return known_class(view.final, [GaussianNB]) is not None and sp.issparse(task.data.X)


class _Chooser:
    """Chooses among the engines for one task.

    Parameters
    ----------
    name : str
        The engine, or ``"auto"``.
    task : Task
    """

    def __init__(self, name: str, task: Task) -> None:
        self._name = name
        self._task = task
        self._is_auto = name == "auto"
        self._engines = engines_for(task.data.X)
        self._unfit = {engine.name: _why_not_call(engine, task) for engine in self._engines}
        """Why each engine cannot do the task, whatever the estimator."""
        self._behind: dict[int, _Chooser] = {}
        """For the same task with transformed rows."""

    def choose(self, view: Candidate) -> Choice:
        """The first engine that applies, to a pipeline as a whole or behind its first steps."""
        engines = list(self._engines)
        if not self._is_auto:
            engines = [engine_named(self._name, engines)]
        refits = [engine for engine in engines if engine.name == "refit"]
        first = self._first(view, [engine for engine in engines if engine not in refits])
        if isinstance(first, Choice):
            return first
        choice = None
        if self._name != "refit" and self._indivisible_reason(view) is None:
            choice = self._choose_for_last_step(view, engines)
        if choice is None:
            last = self._first(view, refits)
            if isinstance(last, _NoChoice):
                first.reasons.update(last.reasons)
                raise self._error(view, first)
            choice = last
        rejection = first.rejection or choice.rejection
        if rejection is None and choice.name == "refit" and self._is_auto:
            rejection = self._rejection_of_last_step(view)
        return replace(choice, rejection=rejection)

    def reasons(self, view: Candidate) -> dict[str, Reason]:
        """Why each engine is not chosen for an estimator as it is."""
        reasons = {}
        for engine in self._engines:
            spec = self._spec(engine, view)
            text = spec if isinstance(spec, str) else self._why_not_auto(engine, spec)
            reasons[engine.name] = Reason(text or "", isinstance(spec, str))
        return reasons

    def _spec(self, engine: Engine, view: Candidate) -> Spec | str:
        """The spec by an engine, whether or not it is to be chosen by ``"auto"``."""
        task = self._task
        reason = self._unfit[engine.name]
        if reason is None and engine.name != "refit":
            reason = _why_own_fit(view, task)
        if reason is not None:
            return reason
        if not task.return_train_score or "return_train_score" in engine.returns:
            return engine.spec_of(view, task)
        with_models = with_estimators(task)
        spec = engine.spec_of(view, with_models)
        if isinstance(spec, Spec) or view.learner is None or task.return_estimator:
            return spec
        # Models of the native learner that is the same estimator have the same scores.
        native = engine.spec_of(Candidate(view.learner), with_models)
        return spec if isinstance(native, str) else replace(native, view=view)

    def _why_not_auto(self, engine: Engine, spec: Spec) -> str | None:
        """Why an engine is used on request only, or None."""
        if engine.name == "refit":
            return spec.on_request
        reason = spec.on_request or why_slower(spec, self._task)
        if reason is not None or spec.view.is_native:
            return reason
        problem = self._task.problem
        fold, rows = problem.fold_without_weight(), "rows"
        if fold is None and known_class(spec.final, [ComplementNB]) is not None:
            # It knows a class whose rows all have weight 0, as the complement of others.
            fold, rows = problem.fold_with_class_without_weight(), "rows of a class"
        if fold is None:
            return None
        return f"all training {rows} of fold {fold} have weight 0, so its own fit decides"

    def _first(
        self, view: Candidate, engines: Sequence[Engine], *, later: bool = False
    ) -> Choice | _NoChoice:
        """The first of some engines that applies; by ``"auto"`` if it estimates what refits do.

        Costs are compared ``later`` where the estimator has rows that are not known yet.
        """
        reasons: dict[str, str] = {}
        rejection: Rejection | None = None
        for engine in engines:
            spec = self._spec(engine, view)
            reason = spec if isinstance(spec, str) else None
            if isinstance(spec, Spec) and self._is_auto:
                known = replace(spec, estimate=None) if later else spec
                reason = self._why_not_auto(engine, known)
            if isinstance(spec, Spec) and reason is None:
                return Choice(engine, spec, rejection)
            reasons[engine.name] = str(reason)
            if rejection is None and engine.serves(view):
                rejection = self._rejection(engine, view, reason or "", spec)
        return _NoChoice(reasons, rejection)

    def _rejection(
        self, engine: Engine, view: Candidate, reason: str, spec: Spec | str
    ) -> Rejection:
        asked = _asked(self._task)
        if asked and isinstance(reason, LacksEstimators):
            reason = f"{reason}, which {asked} needs"
        is_avoidable = engine.warns_of_refits and not _needs_dense_rows(view, self._task)
        estimate = None
        if isinstance(spec, Spec) and spec.on_request is None:
            estimate = estimate_of(spec, self._task)
        if estimate is None or estimate.reason != reason:
            return Rejection(engine.name, reason, isinstance(spec, Spec), is_avoidable)
        # Refits are the right choice.
        return Rejection(engine.name, reason, True, False, estimate)

    def _rejection_of_last_step(self, view: Candidate) -> Rejection | None:
        """Why a pipeline is refitted although an engine is made for its last step, if one is."""
        *others, last = flat_steps(view.estimator)
        step = Candidate(last)
        name = next((engine.name for engine in self._engines if engine.serves(step)), None)
        if not others or name is None:
            return None
        reason = self._indivisible_reason(view)
        if reason is None and returned(self._task):
            reason = f"{_asked(self._task)} needs the fitted pipeline"
        if reason is None:
            reason = f"{fitted_steps(others)} must be fitted per fold"
        return Rejection(name, reason, is_avoidable=False)

    def _indivisible_reason(self, view: Candidate) -> str | None:
        """Why a pipeline must be fitted as a whole, or None where its steps can be taken apart."""
        task = self._task
        *others, last = flat_steps(view.estimator)
        if last is view.estimator:
            return "it is no pipeline"
        if others and isinstance(task.data.X, RowSource):
            return f"steps of a pipeline are not for rows {task.data.X.where}"
        if task.fit_params or (is_routing() and task.data.weights is not None):
            return "arguments of fit are routed to its steps"
        if returned(task) and not self._is_auto and others:
            return f"{_asked(task)} needs the fitted pipeline"
        if task.why_not_scored is not None:
            return task.why_not_scored
        if any(_takes_kernel(step) for step in (view.estimator, last)):
            return "it takes a kernel"
        are_transformers = all(hasattr(step, "transform") for step in others)
        if not are_transformers or _transforms_input(view.estimator):
            return "its steps are more than transformers"
        return _why_own_fit(view, task)

    def _choose_for_last_step(self, view: Candidate, engines: Sequence[Engine]) -> Choice | None:
        """The engine behind steps that need no fit, or of the last step with all others fitted."""
        *others, last = flat_steps(view.estimator)
        problem, n_stateless = self._task.problem, 0
        for step in others if not returned(self._task) else ():
            after = transformed(problem, step) if needs_no_fit(step) else None
            if after is None:
                break
            problem, n_stateless = after, n_stateless + 1
        if n_stateless or not others:
            steps = [*others[n_stateless:], last]
            rest = last if len(steps) == 1 else make_pipeline(*steps)
            choice = self._on(problem).choose(Candidate(rest))
            spec = hoisted_spec(view, Rest(problem, choice.engine, choice.spec))
            return Choice(HOISTED, spec, choice.rejection)
        of_maps = self._choose_behind_maps(view, engines)
        if of_maps is not None:
            return of_maps
        # Each fold is a task of its own, with one training set.
        single = [engine for engine in engines if not engine.needs_partition]
        # Fitted pipelines are assembled of fitted steps.
        if returned(self._task) or (self._is_auto and is_slower_per_fold(others, last)):
            single = [engine for engine in self._engines if engine.name == "refit"]
        of_last = self._first(Candidate(last), single, later=True)
        if isinstance(of_last, _NoChoice):
            return None
        before = Steps(tuple(others), last, of_last.engine, self._is_auto)
        return Choice(FOLD_STEPS, fold_steps_spec(view, before), of_last.rejection)

    def _choose_behind_maps(self, view: Candidate, engines: Sequence[Engine]) -> Choice | None:
        """The engine of the last step on columns that folds share, where all steps are maps."""
        *others, last = flat_steps(view.estimator)
        step = Candidate(last)
        may_be = any(engine.takes_maps and engine.serves(step) for engine in engines)
        if not may_be or returned(self._task) or self._task.options.get("check"):
            return None
        problem = mapped(self._task.problem, others)
        if problem is None:
            return None
        choice = self._on(problem)._first(step, engines)
        if isinstance(choice, _NoChoice):
            return None
        rest = Rest(problem, choice.engine, choice.spec)
        return Choice(MAPPED, mapped_spec(view, rest))

    def _on(self, problem: Problem) -> _Chooser:
        """The chooser for other rows."""
        if id(problem) not in self._behind:
            self._behind[id(problem)] = _Chooser(self._name, replace(self._task, problem=problem))
        return self._behind[id(problem)]

    def _error(self, view: Candidate, refused: _NoChoice) -> Exception:
        kind = TypeError if _needs_dense_rows(view, self._task) else ValueError
        specs = {engine.name: self._spec(engine, view) for engine in self._engines}
        usable = {name: spec for name, spec in specs.items() if isinstance(spec, Spec)}
        rows = self._task.data.X
        if self._is_auto and isinstance(rows, RowSource) and rows.engines is None:
            return _why_not_on_disk(view, refused.rejection)
        if self._is_auto:
            return kind(_why_not_auto_at_all(view, refused.reasons, usable))
        return kind(
            f"engine={self._name!r} does not apply: {refused.reasons[self._name]}. Engines that "
            f"apply: {', '.join(usable) or 'none'}"
        )


def _why_not_auto_at_all(
    view: Candidate, reasons: dict[str, str], on_request: dict[str, Spec]
) -> str:
    """Why no engine is for an estimator, but for one that can be asked for by its name."""
    for name, spec in on_request.items():
        *_, last = (reason for other, reason in reasons.items() if other not in on_request)
        return (
            f"engine='auto' does not apply to {view.name}, because {last}; engine={name!r} does, "
            f"and {spec.on_request}"
        )
    listed = "; ".join(f"{name}: {reason}" for name, reason in reasons.items())
    return f"no engine can do this ({listed})"


def _why_not_on_disk(view: Candidate, rejection: Rejection | None) -> ValueError:
    if rejection is not None and engine_named(rejection.engine).takes_files:
        return ValueError(
            f"X exceeds memory_mb, so that its rows stay on disk, and engine={rejection.engine!r} "
            f"does not apply: {rejection.reason}"
        )
    return RowsNeedMemoryError(
        f"X: {view.name} needs all rows in memory, and they exceed memory_mb. Files are read block "
        "by block for native learners (onefold.learners), naive Bayes, least squares, logistic "
        "regression, generalised linear models and linear SVMs; with a larger memory_mb they are "
        "read at once"
    )


def _takes_kernel(estimator: Any) -> bool:
    """Whether the rows of an estimator are those of a kernel, or distances."""
    return hasattr(estimator, "__sklearn_tags__") and get_tags(estimator).input_tags.pairwise


def _transforms_input(estimator: Any) -> bool:
    """Whether a pipeline transforms more than its rows."""
    if not isinstance(estimator, Pipeline):
        return False
    transformed_too = getattr(estimator, "transform_input", None)
    return transformed_too is not None or any(
        _transforms_input(step) for _, step in estimator.steps
    )


def returned(task: Task) -> set[str]:
    """Name what is to be returned of the fitted estimators."""
    return {name for name in ("return_estimator", "return_train_score") if getattr(task, name)}


def _asked(task: Task) -> str:
    """The arguments that ask for the fitted estimators."""
    return " and ".join(f"{name}=True" for name in sorted(returned(task)))


def steps_per_fold(spec: Spec) -> Steps | None:
    """The steps of a pipeline that are fitted per fold, if some are."""
    while isinstance(spec.params, Rest):
        spec = spec.params.spec
    return spec.params if isinstance(spec.params, Steps) else None


def fitted_steps(steps: Sequence[Any]) -> str:
    """The names of the steps that need a fit."""
    names = [type(step).__name__ for step in steps if not needs_no_fit(step)]
    return " and ".join(dict.fromkeys(names)) or type(steps[0]).__name__
