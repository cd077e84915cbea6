"""The choice of an engine for each estimator: the cheapest that estimates what refits do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.svm import LinearSVC
from sklearn.utils import get_tags

from .._estimator_class import known_class
from .._files import FileRows
from .._routing import is_routing
from .._transforms import reads_texts
from .._warnings import warn
from ._base import Candidate, Engine, Plan, Runner, flat_steps
from ._fold_steps import FoldSteps, FoldStepsPlan, StepFits
from ._forest import Forests
from ._hoisted import Hoisted, HoistedPlan
from ._merge import Merge
from ._neighbours import Neighbours
from ._newton import Newton
from ._path import Path
from ._refit import Refit
from ._repeated import Repeated
from ._seeded import Seeded
from ._steps import needs_no_fit, transformed
from ._task import Problem, Task
from ._train_scores import TrainScored, with_estimators
from ._tree import Tree
from ._virtual import Virtual

__all__ = ["ENGINES", "Choice", "RefitWarning", "choose", "warn_of_refits"]

ENGINES: tuple[Engine, ...] = (
    Merge(),
    Virtual(),
    Newton(),
    Path(),
    Seeded(),
    Neighbours(),
    Forests(),
    Tree(),
    Refit(),
)
"""In the order in which ``engine="auto"`` tries them. `Refit` does everything and comes last."""

ENGINES_BY_NAME: Mapping[str, Engine] = {engine.name: engine for engine in ENGINES}


class RefitWarning(UserWarning):
    """An estimator that an engine could serve is fitted once per fold: the message says why."""


@dataclass(frozen=True)
class Choice:
    """The engine of one candidate, and its plan."""

    engine: Runner
    """The engine, or what runs the steps of a pipeline before it."""
    plan: Plan
    obstacle: Obstacle | None = None
    """Why an engine for this kind of estimator was not chosen, where there is one."""

    @property
    def name(self) -> str:
        """The name of the engine."""
        return self.plan.served_by or self.engine.name


@dataclass(frozen=True)
class Obstacle:
    """Why an engine that is made for a kind of estimator was not chosen."""

    engine: str
    reason: str
    on_request: bool = False
    """Whether the engine can be asked for by name: it would answer another question."""
    is_avoidable: bool = True
    """Whether the caller can do something about it."""

    @property
    def advice(self) -> str:
        """What the caller can do."""
        if self.on_request:
            return f"engine={self.engine!r} does it on request, engine='refit' avoids this warning"
        return "engine='refit' avoids this warning"


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
    _check_options(task.options)
    if name not in (names := [engine.name for engine in ENGINES]) and name != "auto":
        raise ValueError(f"engine must be 'auto' or one of {names}, got {name!r}")
    for estimator in estimators:
        _check_pairwise(estimator, task.data.X)
    chooser = _Chooser(name, task)
    return [chooser.choose(Candidate(estimator)) for estimator in estimators]


def _check_options(options: dict[str, Any]) -> None:
    """Raise an error for an unknown option or a bad value, whichever engine it is for."""
    checks = {name: check for engine in ENGINES for name, check in engine.options.items()}
    for name, value in options.items():
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


def _offer(engine: Engine, task: Task) -> Engine | str:
    unknown = set(task.options) - set(engine.options)
    if unknown:
        return f"it has no option {', '.join(sorted(unknown))}"
    if task.required is not None and task.required not in engine.responses:
        return f"it gives no {task.required}"
    if isinstance(task.data.X, FileRows):
        reason = _why_not_file(engine, task)
        if reason is not None:
            return reason
    missing = _returned(task) - engine.returns
    if missing == {"return_train_score"} and "return_estimator" in engine.returns:
        offer = _offer(engine, with_estimators(task))
        return offer if isinstance(offer, str) else TrainScored(offer)
    if missing:
        return f"it has no fitted estimators, which {_asked(task)} needs"
    if not engine.needs_partition or task.problem.is_partition:
        return engine
    if task.problem.partitions is None:
        return engine if engine.takes_growing_sets else "the test sets are not a partition"
    return Repeated(engine, task.problem)


def _why_not_file(engine: Engine, task: Task) -> str | None:
    """Why an engine does not take rows on disk, or None."""
    if not engine.takes_files:
        return "it needs rows in memory, which those of this file exceed (memory_mb)"
    if not task.problem.is_partition:
        return "of rows on disk it needs a single partition"
    if _returned(task) or task.options.get("check"):
        return "of rows on disk it has no fitted estimators, train scores or check"
    return task.why_not_scored


def _plan(offer: Engine | str, candidate: Candidate, task: Task) -> Plan | str:
    if isinstance(offer, str):
        return offer
    reason = None if offer.name == "refit" else _why_refit(candidate, task)
    return offer.plan(candidate, task) if reason is None else reason


def _why_refit(candidate: Candidate, task: Task) -> str | None:
    """Why an estimator must be fitted by its own ``fit``, whatever it is, or None."""
    estimator = candidate.estimator
    if task.required is not None and not hasattr(estimator, task.required):
        return f"{candidate.name} has no {task.required} before it is fitted"
    follows = task.propagates_callbacks and hasattr(estimator, "set_callbacks")
    if follows or getattr(estimator, "_skl_callbacks", None):
        return f"callbacks follow the fit of {candidate.name}"
    return None


def _why_not_weights(candidate: Candidate, task: Task) -> str | None:
    """Which training set has no weight, so that the estimator's own ``fit`` decides, or None."""
    fold = None if candidate.is_native else task.problem.fold_without_weight()
    if fold is None:
        return None
    return f"all training rows of fold {fold} have weight 0, so its own fit decides"


@dataclass(frozen=True)
class _Refusal:
    """No engine applies."""

    reasons: dict[str, str]
    """Why, by the name of the engine."""
    obstacle: Obstacle | None
    """That of the first engine that is made for such estimators."""


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
        self._offers = {engine.name: _offer(engine, task) for engine in ENGINES}
        """Each engine ready for the task, or why it cannot do it, whatever the estimator."""
        self._hoisted = Hoisted()
        self._fold_steps = FoldSteps()
        self._behind: dict[int, _Chooser] = {}
        """For the same task with transformed rows."""

    def choose(self, candidate: Candidate) -> Choice:
        """The first engine that applies, to a pipeline as a whole or behind its first steps."""
        names = list(ENGINES_BY_NAME) if self._name == "auto" else [self._name]
        found = self._first(candidate, [name for name in names if name != "refit"])
        if isinstance(found, Choice):
            return found
        refused, choice = found, None
        if self._name != "refit" and self._why_whole(candidate) is None:
            choice = self._behind_steps(candidate, names)
        if choice is None and "refit" in names:
            refit = self._first(candidate, ["refit"])
            if isinstance(refit, Choice):
                choice = refit
            else:
                refused.reasons.update(refit.reasons)
        if choice is None:
            raise ValueError(self._error(candidate, refused))
        obstacle = refused.obstacle or choice.obstacle
        if obstacle is None and choice.name == "refit" and self._name == "auto":
            obstacle = self._obstacle_of_last_step(candidate)
        return replace(choice, obstacle=obstacle)

    def _first(self, candidate: Candidate, names: Sequence[str]) -> Choice | _Refusal:
        """The first of some engines that applies; by ``"auto"`` if it estimates what refits do."""
        refused = _Refusal({}, None)
        for name in names:
            offer = self._offers[name]
            plan = _plan(offer, candidate, self._task)
            reason = plan if isinstance(plan, str) else None
            if isinstance(plan, Plan) and self._name == "auto":
                reason = plan.not_auto
                if reason is None and name != "refit":
                    reason = _why_not_weights(candidate, self._task)
            if reason is None and isinstance(plan, Plan) and not isinstance(offer, str):
                return Choice(offer, plan, refused.obstacle)
            refused.reasons[name] = str(reason)
            if refused.obstacle is None and ENGINES_BY_NAME[name].serves(candidate):
                asked = _asked(self._task)
                if asked and "fitted estimators" in str(reason) and asked not in str(reason):
                    reason = f"{reason}, which {asked} needs"
                obstacle = Obstacle(
                    name,
                    str(reason),
                    on_request=isinstance(plan, Plan),
                    is_avoidable=ENGINES_BY_NAME[name].warns_of_refits,
                )
                refused = replace(refused, obstacle=obstacle)
        return refused

    def _obstacle_of_last_step(self, candidate: Candidate) -> Obstacle | None:
        """Why a pipeline is refitted although an engine is made for its last step, if one is."""
        *others, last = flat_steps(candidate.estimator)
        if not others:
            return None
        step = Candidate(last)
        name = next((own.name for own in ENGINES if own.serves(step)), None)
        if name is None:
            return None
        reason = self._why_whole(candidate)
        if reason is None and _returned(self._task):
            reason = f"{_asked(self._task)} needs the fitted pipeline"
        if reason is None:
            reason = f"{_fitted_steps(others)} must be fitted per fold"
        return Obstacle(name, reason, is_avoidable=False)

    def _why_whole(self, candidate: Candidate) -> str | None:
        """Why a pipeline must be fitted as a whole, or None where its steps can be taken apart."""
        task = self._task
        *others, last = flat_steps(candidate.estimator)
        if last is candidate.estimator:
            return "it is no pipeline"
        if isinstance(task.data.X, FileRows):
            return "steps of a pipeline are not for rows on disk"
        if task.fit_params or (is_routing() and task.data.weights is not None):
            return "arguments of fit are routed to its steps"
        if _returned(task) and (self._name != "auto" or not others):
            return f"{_asked(task)} needs the fitted pipeline"
        if task.why_not_scored is not None:
            return task.why_not_scored
        if any(_takes_kernel(own) for own in (candidate.estimator, last)):
            return "it takes a kernel"
        if not all(hasattr(step, "transform") for step in others) or _transforms_input(
            candidate.estimator
        ):
            return "its steps are more than transformers"
        return _why_refit(candidate, task)

    def _behind_steps(self, candidate: Candidate, names: Sequence[str]) -> Choice | None:
        """The engine behind steps that need no fit, or of the last step with all others fitted."""
        *others, last = flat_steps(candidate.estimator)
        problem, n_hoisted = self._task.problem, 0
        for step in others if not _returned(self._task) else ():
            after = transformed(problem, step) if needs_no_fit(step) else None
            if after is None:
                break
            problem, n_hoisted = after, n_hoisted + 1
        if n_hoisted or not others:
            rest = [*others[n_hoisted:], last]
            found = self._on(problem).choose(
                Candidate(last if len(rest) == 1 else make_pipeline(*rest))
            )
            plan = HoistedPlan(
                candidate.estimator, problem=problem, engine=found.engine, rest=found.plan
            )
            return Choice(self._hoisted, plan, found.obstacle)
        # Each fold is a task of its own, with one training set.
        single = [name for name in names if not ENGINES_BY_NAME[name].needs_partition]
        # Fitted pipelines are assembled of fitted steps. On rows as wide as a vocabulary, liblinear
        # solves one fold sooner than an engine that shares nothing with the other folds.
        is_auto = self._name == "auto"
        if _returned(self._task) or (is_auto and reads_texts(others[0]) and _by_liblinear(last)):
            single = ["refit"]
        of_last = self._first(Candidate(last), single)
        if isinstance(of_last, _Refusal):
            return None
        engine = ENGINES_BY_NAME[of_last.name]
        steps = FoldStepsPlan(candidate.estimator, steps=tuple(others), last=last, engine=engine)
        return Choice(self._fold_steps, steps, of_last.obstacle)

    def _on(self, problem: Problem) -> _Chooser:
        """The chooser for other rows."""
        if id(problem) not in self._behind:
            self._behind[id(problem)] = _Chooser(self._name, replace(self._task, problem=problem))
        return self._behind[id(problem)]

    def _error(self, candidate: Candidate, refused: _Refusal) -> str:
        if self._name == "auto" and isinstance(self._task.data.X, FileRows):
            obstacle = refused.obstacle
            if obstacle is not None and ENGINES_BY_NAME[obstacle.engine].takes_files:
                return (
                    f"X exceeds memory_mb, and its rows on disk are not for "
                    f"engine={obstacle.engine!r}: {obstacle.reason}"
                )
            return (
                f"X: {candidate.name} needs all rows in memory, and they exceed memory_mb. Files "
                "are read block by block for native learners (onefold.learners), naive Bayes and "
                "least squares"
            )
        if self._name == "auto":
            listed = "; ".join(f"{name}: {reason}" for name, reason in refused.reasons.items())
            return f"no engine can do this ({listed})"
        plans = {name: _plan(offer, candidate, self._task) for name, offer in self._offers.items()}
        usable = [name for name, plan in plans.items() if isinstance(plan, Plan)]
        return (
            f"engine={self._name!r} does not apply: {refused.reasons[self._name]}. What does: "
            f"{', '.join(usable) or 'none'}"
        )


def _by_liblinear(estimator: Any) -> bool:
    """Whether liblinear solves an estimator of scikit-learn."""
    return known_class(estimator, [LinearSVC]) is not None


def _takes_kernel(estimator: Any) -> bool:
    """Whether the rows of an estimator are those of a kernel, or distances."""
    return hasattr(estimator, "__sklearn_tags__") and get_tags(estimator).input_tags.pairwise


def _transforms_input(estimator: Any) -> bool:
    """Whether a pipeline transforms more than its rows."""
    if not isinstance(estimator, Pipeline):
        return False
    own = getattr(estimator, "transform_input", None)
    return own is not None or any(_transforms_input(step) for _, step in estimator.steps)


def _returned(task: Task) -> set[str]:
    """What is to be returned of the fitted estimators."""
    return {name for name in ("return_estimator", "return_train_score") if getattr(task, name)}


def _asked(task: Task) -> str:
    """The arguments that ask for the fitted estimators."""
    return " and ".join(f"{name}=True" for name in sorted(_returned(task)))


def warn_of_refits(task: Task, choices: Sequence[Choice]) -> list[str]:
    """Say what is fitted once per fold, and return it for the notes of the result.

    A warning only where an engine is made for an estimator and the caller can do something about
    it: not where the steps of a pipeline must be fitted to each training set, nor where fitted
    estimators or train scores are asked for.

    Parameters
    ----------
    task : Task
    choices : sequence of Choice
        All that were made by ``"auto"``.
    """
    refits, advice = _describe_refits(task, choices)
    if advice and not _returned(task):
        warn(f"{refits[0]} ({advice})", RefitWarning)
    return refits + _describe_steps(task, choices)


def _describe_refits(task: Task, choices: Sequence[Choice]) -> tuple[list[str], str]:
    """What is refitted and why, and what can be done about it."""
    refitted = [choice for choice in choices if choice.name == "refit"]
    if not refitted:
        return [], ""
    first = next((choice for choice in refitted if choice.obstacle is not None), refitted[0])
    name = type(flat_steps(first.plan.estimator)[-1]).__name__
    count = f"fitted {len(refitted) * len(task.folds)} times"
    if first.obstacle is None:
        return [f"no engine is made for {name}, so it was {count}"], ""
    advice = first.obstacle.advice if first.obstacle.is_avoidable else ""
    return [f"{name} is {count}: {first.obstacle.reason}"], advice


def _describe_steps(task: Task, choices: Sequence[Choice]) -> list[str]:
    """Which steps are fitted per fold before a last step that an engine solves."""
    plans = [_behind_hoisted(choice.plan) for choice in choices if choice.name != "refit"]
    own = [plan for plan in plans if isinstance(plan, FoldStepsPlan)]
    if not own:
        return []
    last = type(own[0].last).__name__
    said = f"{_fitted_steps(own[0].steps)} must be fitted per fold, so {last} is solved per fold"
    fits = StepFits.of(own, len(task.folds))
    if fits.saved:
        said += f"; {fits.made} of {fits.made + fits.saved} fits before it are enough"
    return [said]


def _fitted_steps(steps: Sequence[Any]) -> str:
    """The names of the steps that need a fit."""
    names = [type(step).__name__ for step in steps if not needs_no_fit(step)]
    return " and ".join(dict.fromkeys(names)) or type(steps[0]).__name__


def _behind_hoisted(plan: Plan) -> Plan:
    while isinstance(plan, HoistedPlan):
        plan = plan.rest
    return plan
