"""Checks of one result: OF2 to OF8, and OF10 and OF11 from what its call has recorded."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm
from scipy.stats import t as t_distribution

from .._engines.early_stopping import why_optimistic
from .._engines.iterations import Iterations
from .._inputs.folds import Folds, partitions
from ..stats._interval import interval, why_not_independent
from ._check import LEVEL, MAX_RATIO, Check
from ._dummy import dummy_losses
from ._number import with_error
from ._statistics import between_sets, neighbor_correlation

if TYPE_CHECKING:
    from .._engines.status import Status
    from ..result._cv_result import CVResult

__all__ = ["convergence", "recorded_checks", "result_checks"]

Floats = NDArray[np.float64]

MIN_CORRELATION = 0.1
"""The correlation of neighbors that OF8 begins with."""

NEGLIGIBLE = 0.1
"""Differences to refits below this share of the standard error of the score are no order effect."""

ENOUGH_GAP = 1e-6
"""A relative duality gap that no score shows."""

MAX_MODELS = 1000
"""Fold models that are asked whether they have converged."""


def result_checks(result: CVResult) -> list[Check]:
    """The checks OF2 to OF8 of a result."""
    verdicts = []
    for number, check in _CHECKS.items():
        try:
            verdicts.append(check(result))
        except (TypeError, ValueError, ArithmeticError) as error:
            # Such as labels of several types, which cannot be sorted: no report should fail by it.
            verdicts.append(_not(number, f"It cannot be computed: {error}."))
    return verdicts


def recorded_checks(result: CVResult) -> list[Check]:
    """The checks OF10 and OF11 of a result, from what the call has recorded."""
    settings = getattr(result, "settings", None) or {}
    return [_scaling(result, settings), _early_stopping(settings)]


def _scaling(result: CVResult, settings: dict[str, Any]) -> Check:
    ratio = settings.get("scale_ratio")
    if ratio is None:
        return _not("OF10", "The scales of features do not matter to it, or are not known.")
    finding = f"The largest scale of a feature is {ratio:.3g} times the median one"
    if ratio < MAX_RATIO:
        return Check("OF10", "ok", f"{finding}.", {"ratio": ratio})
    advice = f"{result.estimator_name} takes features as they are: put a scaler before it"
    return Check("OF10", "look", f"{finding}, and {advice}.", {"ratio": ratio})


def _early_stopping(settings: dict[str, Any]) -> Check:
    share = (settings.get("options") or {}).get("eval_split")
    if share is not None:
        finding = f"Rows of each training set stop the training (eval_split={share})."
        return Check("OF11", "ok", finding)
    n_rows = settings.get("rows_in_eval_set")
    if n_rows is None:
        return _not("OF11", "No eval_set was passed, or it cannot be compared with X.")
    values = {"n_rows": n_rows}
    if not n_rows:
        return Check("OF11", "ok", "eval_set has no row of X.", values)
    return Check("OF11", "look", f"{why_optimistic(n_rows)}.", values)


def _not(number: str, reason: str) -> Check:
    return Check(number, "not applicable", reason)


def _p(p: float) -> str:
    return f"p = {p:.2g}" if p >= 0.0011 else ("p ≤ 0.001" if p >= 0.001 else f"p = {p:.1g}")


def _is_loo(result: CVResult) -> bool:
    return bool(np.diff(result._starts).max() == 1)


def _one_partition(result: CVResult) -> tuple[NDArray[np.int64], NDArray[np.int64], str] | None:
    """Rows in test order and starts of test sets in which no sample is held out twice."""
    form = result.std_error_form
    if form == "disjoint":
        return result._rows, result._starts, ""
    if form == "repeated":
        parts = partitions(result.folds)
        n_sets = 0 if parts is None else len(parts[0])
        starts = result._starts[: n_sets + 1]
        return result._rows[: starts[-1]], starts, ", on the first partition"
    return None


def _folds_differ(result: CVResult) -> Check:
    losses, chosen = result._losses, _one_partition(result)
    if losses is None or not np.isfinite(losses).all():
        return _not("OF2", "The loss of every sample is not known.")
    if result.has_groups:
        return _not("OF2", "Test sets of groups differ, because the groups do.")
    if chosen is None:
        return _not("OF2", "Test sets share samples.")
    if _is_loo(result):
        return _not("OF2", "Every test set is one sample.")
    rows, starts, where = chosen
    p = between_sets(losses[: len(rows)], starts)
    if np.isnan(p):
        return _not("OF2", "All losses are equal, or there is one test set.")
    means = np.add.reduceat(losses[: len(rows)], starts[:-1]) / np.diff(starts)
    finding = (
        f"The mean {result.loss} loss of the test sets is {means.min():.4g} to {means.max():.4g}"
    )
    values = {"p": p, "lowest": float(means.min()), "highest": float(means.max())}
    if p <= LEVEL:
        return Check(
            "OF2", "look", f"{finding}, more than chance explains ({_p(p)}{where}).", values
        )
    return Check("OF2", "ok", f"{finding}, no more than chance explains ({_p(p)}{where}).", values)


# Order


def _order_effect(result: CVResult) -> Check:
    risk = result.status.order_risk
    checked = None if result.check is None else _difference_to_refits(result)
    if checked is not None and checked.verdict in ("problem", "look"):
        return checked
    if risk:
        return Check("OF3", "problem", f"{risk[0].upper()}{risk[1:]}.")
    targets = _targets_differ(result)
    if targets.verdict == "look" or checked is None or checked.verdict == "not applicable":
        return targets
    return checked


def _difference_to_refits(result: CVResult) -> Check:
    check = result.check
    if check is None or check.n_folds < 2:
        return _not("OF3", "One refitted fold has no standard error: use check=20 or so.")
    worst = None
    for name, difference in check.difference.items():
        error = check.std_error[name]
        p = 1.0 if difference == 0 else 0.0
        if error > 0:
            p = 2 * float(t_distribution.sf(abs(difference) / error, check.n_folds - 1))
        scores = result.scores.get(name)
        scale = np.nan if scores is None else result._error(scores)
        if not np.isfinite(scale) or scale == 0:
            scale = abs(difference) if abs(difference) > 1e-6 else np.inf
        is_effect = p <= LEVEL / len(check.difference) and abs(difference) > NEGLIGIBLE * scale
        # Scores are the better the larger they are, losses the smaller.
        flatters = difference > 0 if name in result.scores else difference < 0
        if is_effect and (worst is None or flatters):
            worst = (flatters, name, p)
    values = {"difference": dict(check.difference), "std_error": dict(check.std_error)}
    if worst is None:
        return Check("OF3", "ok", f"No difference to refits that matters: {check}.", values)
    flatters, name, p = worst
    how = "better than" if flatters else "worse than"
    return Check(
        "OF3",
        "problem" if flatters else "look",
        f"By {name}, {result.engine} looks {how} refits: {check}, {_p(p)}.",
        values | {"p": p},
    )


def _targets_differ(result: CVResult) -> Check:
    targets = result.targets
    if targets is None or np.ndim(targets) != 1:
        return _not("OF3", "There is no single target, and no check=m.")
    if result.has_groups or not isinstance(result.folds, Folds):
        return _not(
            "OF3", "The test sets are made by groups, time or chance, and there is no check=m."
        )
    if _is_loo(result):
        return _not("OF3", "Every test set is one sample, and there is no check=m.")
    columns, rank = _columns(result, targets)
    if columns is None:
        return _not("OF3", "The targets are not numbers or classes.")
    p = between_sets(columns[result._rows], result._starts, rank=rank)
    if np.isnan(p):
        return _not("OF3", "All targets are equal.")
    if p > LEVEL:
        return Check("OF3", "ok", f"The folds have similar targets ({_p(p)}).", {"p": p})
    are_blocks = bool((np.diff(result.folds.labels.astype(np.int64)) >= 0).all())
    why = (
        "the folds are blocks of neighboring rows, so the rows seem to be sorted"
        if are_blocks
        else "the folds are not a random choice of rows"
    )
    sentence = f"The targets of the folds differ more than chance explains ({_p(p)}): {why}."
    return Check("OF3", "look", sentence, {"p": p})


def _columns(result: CVResult, targets: NDArray[Any]) -> tuple[Any, int]:
    """Targets as numbers, or as indicators of classes scaled to count alike, and their rank."""
    if result._loss_of_predictions != "zero-one":
        is_number = targets.dtype.kind in "biuf" and bool(np.isfinite(targets).all())
        return (targets.astype(np.float64)[:, None] if is_number else None), 1
    classes, codes, counts = np.unique(targets, return_inverse=True, return_counts=True)
    if len(classes) > 50:
        return None, 0
    shares = counts / len(targets)
    return (codes[:, None] == np.arange(len(classes))) / np.sqrt(shares), len(classes) - 1


# Fits


def _converged(result: CVResult) -> Check:
    return convergence(result.status, result)


def convergence(status: Status, result: CVResult | None = None) -> Check:
    """OF4 of a result, or of the candidates of a search that one engine solved."""
    if result is not None and "estimator" in result:
        models = _reached_max_iter(result["estimator"])
        if models is not None:
            return models
    if result is not None and result.certificates is not None and not status.unsolved:
        return Check("OF4", "ok", "Every prediction is certified or re-solved.")
    if status.measure and status.reached is not None and status.tol is not None:
        values = {"reached": status.reached, "tol": status.tol}
        finding = (
            f"Every fold was solved to a {status.measure} of {status.reached:.1e}, "
            f"tol={status.tol:g}."
        )
        if not status.unsolved:
            return Check("OF4", "ok", finding, values)
        # A duality gap bounds the error, so that a small one is enough.
        is_enough = status.solved_by == "path" and status.reached <= ENOUGH_GAP
        verdict = "look" if status.solved_by == "path" else "problem"
        return Check("OF4", "ok" if is_enough else verdict, finding, values)
    if status.unsolved:
        return Check("OF4", "problem", f"Not converged: {status.unsolved}.")
    engine = status.solved_by
    if engine == "tree":
        return _not("OF4", "Training is a single pass over the rows.")
    if engine == "refit":
        return _not(
            "OF4",
            "No fit is known to have stopped early; return_estimator=True keeps all.",
        )
    if status.converged:
        return Check("OF4", "ok", "Every fold was solved to the tolerance of the estimator.")
    return Check("OF4", "ok", f"Engine {engine!r} needs no iterations.")


def _reached_max_iter(models: Any) -> Check | None:
    """Whether fitted models have used up their iterations, None if they do not count them."""
    iterations = Iterations()
    step = max(1, len(models) // MAX_MODELS)
    for model in models[::step] if isinstance(models, (list, tuple)) else list(models)[::step]:
        iterations.add(model)
    if iterations.n_models == 0:
        return None
    n_asked, limit = iterations.n_models, iterations.max_iter
    values = {"n_reached": iterations.n_reached, "n_models": n_asked, "max_iter": limit}
    if iterations.n_reached:
        return Check("OF4", "problem", f"{iterations.text}.", values)
    return Check("OF4", "ok", f"All {n_asked} fold models stopped before max_iter={limit}.", values)


def _missing_classes(result: CVResult) -> Check:
    targets = result.targets
    is_classifier = result.classes is not None or result._loss_of_predictions == "zero-one"
    if targets is None or not is_classifier or np.ndim(targets) != 1:
        return _not("OF5", "There are no classes, or several labels per sample.")
    classes, codes = np.unique(targets, return_inverse=True)
    untrained, untested = _absent(result, codes, len(classes))
    values = {"untrained": untrained, "untested": untested}
    if untrained:
        finding = f"A class is missing in {untrained} of {len(result.folds)} training sets"
        return Check("OF5", "problem", f"{finding}, and cannot be predicted there.", values)
    if _is_loo(result):
        return Check("OF5", "ok", "Every training set has all classes.", values)
    if untested:
        finding = f"A class is missing in {untested} of {len(result.folds)} test sets."
        return Check("OF5", "look", finding, values)
    return Check("OF5", "ok", "All classes are in every training set and every test set.", values)


def _absent(result: CVResult, codes: NDArray[np.intp], n_classes: int) -> tuple[int, int]:
    """Training sets and test sets that lack a class."""
    folds, n_sets = result.folds, len(result.folds)
    held = np.repeat(np.arange(n_sets), np.diff(result._starts)) * n_classes + codes[result._rows]
    cells, counts = np.unique(held, return_counts=True)
    untested = int((np.bincount(cells // n_classes, minlength=n_sets) < n_classes).sum())
    if isinstance(folds, Folds):
        totals = np.bincount(codes, minlength=n_classes)
        whole = cells[counts == totals[cells % n_classes]]
        return len(np.unique(whole // n_classes)), untested
    trained = (len(np.unique(codes[folds.train(fold)])) for fold in range(n_sets))
    return sum(n_trained < n_classes for n_trained in trained), untested


# Scores


def _worse_than_dummy(result: CVResult) -> Check:
    loss, targets, folds = str(result._loss_of_predictions), result.targets, result.folds
    losses = dummy = None
    if result._losses is not None and targets is not None:
        losses = result.losses_in_test_order(loss)
        if np.isfinite(losses).all():
            dummy = dummy_losses(loss, targets, folds)
    if losses is None or dummy is None or len(dummy) != len(losses):
        return _not("OF6", "There is no loss with a dummy to compare with.")
    gain = dummy - losses
    mean, error, n_sets = float(gain.mean()), 0.0, len(folds)
    limit = float(norm.ppf(1 - LEVEL))
    if np.ptp(gain) == 0:
        error = 0.0
    elif why_not_independent(folds, result.has_groups) is None and isinstance(folds, Folds):
        by_sample = np.empty_like(gain)
        by_sample[result._rows] = gain
        error = interval(by_sample, folds, loss=loss, level=0.95).std_error
    elif n_sets < 2:
        return _not("OF6", "One test set has no standard error.")
    else:
        means = np.add.reduceat(gain, result._starts[:-1]) / np.diff(result._starts)
        mean, error = float(means.mean()), float(result._error(means))
        limit = float(t_distribution.ppf(1 - LEVEL, n_sets - 1))
    what = "the most frequent class" if loss == "zero-one" else "the mean"
    finding = (
        f"Mean {loss} loss {losses.mean():.4g}, of predicting {what} {dummy.mean():.4g}: "
        f"lower by {with_error(mean, error)}"
    )
    values = {"difference": mean, "std_error": error, "dummy": float(dummy.mean())}
    if mean > limit * error:
        return Check("OF6", "ok", f"{finding}.", values)
    if mean < -limit * error:
        return Check("OF6", "problem", f"{finding}: worse than the dummy.", values)
    return Check(
        "OF6", "look", f"{finding}: no better than the dummy as far as one can tell.", values
    )


def _undefined_metric(result: CVResult) -> Check:
    n_sets = len(result.folds)
    lacking = {name: int(np.isnan(score).sum()) for name, score in result.scores.items()}
    lacking = {name: count for name, count in lacking.items() if count}
    if not lacking:
        return Check("OF7", "ok", "Every test set has a score.")
    pooled = result._pooled
    lost = [name for name in lacking if np.isnan(pooled.get(name, np.nan))]
    why = ": it is not defined on single samples" if _is_loo(result) else ""
    parts = ", ".join(f"{name} on {count} of {n_sets}" for name, count in lacking.items())
    if lost:
        finding = f"No score of test sets: {parts}{why}; and none of all samples together."
        return Check("OF7", "problem", finding, {"n_undefined": lacking})
    finding = f"No score of test sets: {parts}{why}. The pooled score takes its place."
    return Check("OF7", "look", finding, {"n_undefined": lacking})


def _neighbors_alike(result: CVResult) -> Check:
    losses, chosen = result._losses, _one_partition(result)
    if losses is None or not np.isfinite(losses).all():
        return _not("OF8", "The loss of every sample is not known.")
    if result.has_groups:
        return _not("OF8", "Groups were given.")
    if chosen is None:
        return _not("OF8", "Test sets share samples.")
    rows, _, where = chosen
    correlation, p = neighbor_correlation(losses[: len(rows)][np.argsort(rows, kind="stable")])
    if np.isnan(p):
        return _not("OF8", "All losses are equal.")
    finding = f"the losses of neighboring rows have a rank correlation of {correlation:.2f}"
    values = {"p": p, "correlation": correlation}
    if p <= LEVEL and correlation >= MIN_CORRELATION:
        hint = "are they from groups, a time series, or sorted?"
        return Check(
            "OF8", "look", f"{finding[0].upper()}{finding[1:]} ({_p(p)}{where}): {hint}", values
        )
    return Check("OF8", "ok", f"No sign of groups or time: {finding} ({_p(p)}{where}).", values)


_CHECKS: dict[str, Callable[[CVResult], Check]] = {
    "OF2": _folds_differ,
    "OF3": _order_effect,
    "OF4": _converged,
    "OF5": _missing_classes,
    "OF6": _worse_than_dummy,
    "OF7": _undefined_metric,
    "OF8": _neighbors_alike,
}
