"""Checks of a search: OF1, OF9, and those of its chosen candidate."""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..stats._standard_error import StandardError
from ._check import ABOUT, Check
from ._result_checks import convergence, recorded_checks, result_checks

if TYPE_CHECKING:
    from ..model_selection._search.result import SearchResult

__all__ = ["line_through", "numeric_parameters", "search_checks"]

Floats = NDArray[np.float64]

N_BOOTSTRAP = 200
"""Bootstrap samples of the test sets."""

MAX_SCORES = 2_000_000
"""Candidates × test sets up to which they are resampled."""


def search_checks(search: SearchResult) -> list[Check]:
    """The checks of a search, in the order of their numbers."""
    return [_edge(search), *_of_chosen(search), _optimism(search), *_recorded(search)]


def _recorded(search: SearchResult) -> list[Check]:
    if search.best is None or search.best not in search.results:
        reason = "The chosen candidate is not kept."
        return [Check(number, "not applicable", reason) for number in _RECORDED]
    return recorded_checks(search.chosen)


def _of_chosen(search: SearchResult) -> list[Check]:
    if search.best is None or search.best not in search.results:
        reason = "The held-out answers of a chosen candidate are not kept (keep=, refit=)."
        verdicts = [
            Check(number, "not applicable", reason) for number in ABOUT if number not in _OWN
        ]
    else:
        verdicts = result_checks(search.chosen)
    for status in search.statuses:
        over_all = convergence(status)
        if over_all.verdict in ("problem", "look"):
            return [over_all if check.number == "OF4" else check for check in verdicts]
    return verdicts


_RECORDED = ("OF10", "OF11")
"""Checks that read what the call has recorded."""

_OWN = ("OF1", "OF9", *_RECORDED)
"""Checks that `result_checks` does not have."""


# The edge of the grid


def numeric_parameters(params: list[dict[str, Any]], best: int) -> list[str]:
    """Parameters of a candidate that are numbers."""
    return [
        name
        for name, value in params[best].items()
        if isinstance(value, Real) and not isinstance(value, (bool, np.bool_))
    ]


def line_through(params: list[dict[str, Any]], best: int, name: str) -> list[tuple[float, int]]:
    """Values of a parameter and positions of candidates equal to one in all else, sorted.

    Examples
    --------
    >>> from onefold.report._search_checks import line_through
    >>> params = [{"C": 1, "k": "a"}, {"C": 9, "k": "b"}, {"C": 4, "k": "a"}, {"C": 2, "k": "a"}]
    >>> line_through(params, 0, "C")
    [(1.0, 0), (2.0, 3), (4.0, 2)]
    """
    rest = {key: value for key, value in params[best].items() if key != name}
    line = {}
    for position, other in enumerate(params):
        value = other.get(name)
        is_number = isinstance(value, Real) and not isinstance(value, (bool, np.bool_))
        if is_number and other.keys() == params[best].keys() and _are_equal(other, rest):
            line[float(other[name])] = position
    line[float(params[best][name])] = best
    return sorted(line.items())


def _are_equal(params: dict[str, Any], rest: dict[str, Any]) -> bool:
    for key, value in rest.items():
        param = params[key]
        if param is value:
            continue
        try:
            if not bool(np.all(param == value)):
                return False
        except (TypeError, ValueError):
            return False
    return True


def _edge(search: SearchResult) -> Check:
    params, best = search.table["params"], search.best
    if best is None:
        return Check("OF1", "not applicable", "No candidate was chosen.")
    means = np.asarray(search.table[f"mean_test_{search.metric}"], dtype=np.float64)
    inside, edges = [], []
    for name in numeric_parameters(params, best):
        line = line_through(params, best, name)
        if len(line) < 3:
            continue
        positions = [position for _, position in line]
        place = positions.index(best)
        if 0 < place < len(line) - 1:
            inside.append(name)
            continue
        next_inside = positions[1 if place == 0 else -2]
        drop = float(means[best] - means[next_inside])
        edges.append((name, "smallest" if place == 0 else "largest", len(line), drop))
    if not inside and not edges:
        return Check("OF1", "not applicable", "No numeric parameter has three values to compare.")
    if not edges:
        return Check("OF1", "ok", f"The choice is inside the range of {', '.join(inside)}.")
    parts = [
        f"{name}={params[best][name]:g} is the {which} of {n} values tried ({drop:+.3g} against "
        "the next one)"
        for name, which, n, drop in edges
    ]
    values = {name: {"edge": which, "difference": drop} for name, which, _, drop in edges}
    return Check("OF1", "look", f"{'; '.join(parts)}.", values)


# The optimism of the choice


def _optimism(search: SearchResult) -> Check:
    def cannot(reason: str) -> Check:
        return Check("OF9", "not applicable", reason)

    best, n_candidates = search.best, len(search.engines)
    if best is None or n_candidates < 2:
        return cannot("There was nothing to choose from.")
    if search.metric in search.table.pooled:
        return cannot(f"{search.metric} is not defined on every test set.")
    scores = search.scores()
    if not np.isfinite(scores).all() or scores.shape[1] < 3:
        return cannot("It takes the scores of all candidates on three test sets or more.")
    if scores.size > MAX_SCORES:
        return cannot("There are too many scores to resample.")
    means = scores.mean(axis=1)
    if means[best] < means.max():
        return cannot("The choice is not the candidate with the best score.")
    optimism = _bootstrap_optimism(scores, best)
    if np.isnan(optimism):
        return cannot("There are too few test sets to resample.")
    error = float(StandardError.of(search.folds)(scores[best]))
    values = {"optimism": optimism, "std_error": error}
    if optimism <= 0:
        finding = f"No sign that being the best of {n_candidates} candidates raised the score."
        return Check("OF9", "ok", finding, values)
    finding = (
        f"Being the best of {n_candidates} candidates is worth about {optimism:.2g} of the score "
        f"(bootstrap), its standard error is {error:.2g}"
    )
    if optimism > error:
        return Check("OF9", "look", f"{finding}: report a nested cross-validation.", values)
    return Check("OF9", "ok", f"{finding}.", values)


def _bootstrap_optimism(scores: Floats, best: int) -> float:
    """The mean score of the choice, less that of choices on the test sets they did not see."""
    n_sets = scores.shape[1]
    drawn = np.random.default_rng(0).multinomial(n_sets, [1 / n_sets] * n_sets, size=N_BOOTSTRAP)
    left_out = drawn == 0
    usable = left_out.any(axis=1)
    if not usable.any():
        return float("nan")
    drawn, left_out = drawn[usable], left_out[usable]
    winners = (scores @ drawn.T).argmax(axis=0)
    unseen = (scores[winners] * left_out).sum(axis=1) / left_out.sum(axis=1)
    return float(scores[best].mean() - unseen.mean())
