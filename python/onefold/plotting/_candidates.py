"""What the plots of a search read from its result: parameters that vary, means, choices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._utils.text import describe
from ..model_selection._search.rules import one_standard_error, order_of
from ..stats._standard_error import StandardError
from ._held_out import choose_metric, metric_label
from ._style import are_numbers, shortened

if TYPE_CHECKING:
    from ..model_selection import SearchResult

__all__ = ["Candidates", "labels_of", "levels", "mark_choices", "short_name", "text_of", "varied"]

Floats = NDArray[np.float64]


def varied(result: SearchResult) -> dict[str, list[Any]]:
    """The values of each parameter that is not the same for all candidates."""
    params = result.table["params"]
    names = dict.fromkeys(name for setting in params for name in setting)
    columns = {name: [setting.get(name) for setting in params] for name in names}
    return {name: column for name, column in columns.items() if len(levels(column)) > 1}


def levels(values: Sequence[Any]) -> list[Any]:
    """Distinct values: numbers in increasing order, then others in the order of their appearance.

    Examples
    --------
    >>> from onefold.plotting._candidates import levels
    >>> levels([10, 1, 10, 0.1]), levels(["rbf", "linear", "rbf"]), levels([None, 5, 3])
    ([0.1, 1, 10], ['rbf', 'linear'], [3, 5, None])
    """
    distinct = list({text_of(value): value for value in values}.values())
    numbers = [value for value in distinct if are_numbers([value])]
    return sorted(numbers) + [value for value in distinct if not are_numbers([value])]


def text_of(value: Any) -> str:
    """A value of a parameter in short.

    Examples
    --------
    >>> from onefold.plotting._candidates import text_of
    >>> text_of(0.00012345678), text_of(32768.0), text_of("rbf"), text_of(None)
    ('0.0001235', '32768', 'rbf', 'None')
    """
    if isinstance(value, str):
        return value
    if are_numbers([value]):
        is_whole = float(value).is_integer() and abs(value) < 1e6
        return str(int(value)) if is_whole else f"{value:.4g}"
    text = " ".join(str(value).split())
    return shortened(text, 30)


def short_name(name: str) -> str:
    """The name of a parameter without the steps of a pipeline that it belongs to."""
    return name.rpartition("__")[2] or name


@dataclass(frozen=True)
class Candidates:
    """The scores of a search by one metric."""

    metric: str
    label: str
    """What to call the metric at an axis."""
    means: Floats
    errors: Floats
    """Standard errors; NaN where the metric is not defined on every test set."""
    best: int
    """Of the largest mean."""
    chosen: int | None
    """Of the search, by this metric or another."""
    simplest: int | None
    """The simplest within one standard error of the best, where it is known what is simpler."""
    phrase: str
    """What the errors are called."""

    @classmethod
    def of(cls, result: SearchResult, metric: str | None, simpler: Any = None) -> Candidates:
        """Read a result."""
        name = result.metric if metric is None else choose_metric(result._metrics(), metric)
        means = np.asarray(result.table[f"mean_test_{name}"], dtype=np.float64)
        if np.isnan(means).all():
            raise ValueError(f"metric={name!r}: no candidate has a score")
        scores = result.scores(name)
        kept = None if result.best is None else result.results.get(result.best)
        error = StandardError.of(result.folds)
        is_paired = name not in result.table.pooled and len(result.folds) > 1
        return cls(
            metric=name,
            label=metric_label(kept, name),
            means=means,
            errors=np.asarray(error(scores)) if is_paired else np.full(len(means), np.nan),
            best=int(np.nanargmax(means)),
            chosen=result.best,
            simplest=_simplest(result, scores, simpler) if is_paired else None,
            phrase=error.phrase,
        )

    @property
    def limit(self) -> float:
        """One standard error below the best."""
        return float(self.means[self.best] - self.errors[self.best])


def _simplest(result: SearchResult, scores: Floats, simpler: Any) -> int | None:
    params = result.table["params"]
    try:
        key, _ = order_of(simpler, params)
        keys = [key(setting) for setting in params]
    except ValueError:
        if simpler is not None:
            raise
        return None
    return one_standard_error(scores, keys, result.folds)


def mark_choices(candidates: Candidates) -> list[tuple[int, str, str]]:
    """Candidates to mark, with what they are and the sign for it."""
    words: dict[int, list[str]] = {candidates.best: ["best"]}
    if candidates.simplest is not None:
        words.setdefault(candidates.simplest, []).append("simplest within one standard error")
    if candidates.chosen is not None:
        words.setdefault(candidates.chosen, []).append("chosen")
    signs = {"chosen": "*", "best": "o", "simplest within one standard error": "D"}
    return [(position, ", ".join(said), signs[said[-1]]) for position, said in words.items()]


def labels_of(params: list[dict[str, Any]], width: int = 44) -> list[str]:
    """Candidates by the parameters that tell them apart, in short.

    Examples
    --------
    >>> from onefold.plotting._candidates import labels_of
    >>> labels_of([{"svc__C": 1, "svc__kernel": "rbf"}, {"svc__C": 10, "svc__kernel": "rbf"}])
    ['C=1', 'C=10']
    """
    names = dict.fromkeys(name for setting in params for name in setting)
    telling = [name for name in names if len({repr(setting.get(name)) for setting in params}) > 1]
    shorts = [short_name(name) for name in telling]
    if len(set(shorts)) < len(shorts):
        shorts = telling
    labels = []
    for setting in params:
        known = [
            (s, setting[name]) for s, name in zip(shorts, telling, strict=True) if name in setting
        ]
        text = ", ".join(f"{short}={text_of(value)}" for short, value in known) or describe(setting)
        labels.append(shortened(text, width))
    return labels
