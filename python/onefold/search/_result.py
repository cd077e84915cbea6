"""The result of a search besides ``cv_results_``."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._folds import Folds, Splits
from .._result import counted, describe_folds
from ._comparison import Comparison, compare, name_of
from ._evaluate import Evaluation
from ._table import Table

__all__ = ["SearchResult"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class SearchResult:
    """Engines, costs and notes of a search.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import Ridge
    >>> import onefold
    >>> X, y = load_diabetes(return_X_y=True)
    >>> grid = {"alpha": [0.01, 0.1, 1, 10]}
    >>> onefold.GridSearchCV(Ridge(), grid, cv=10).fit(X, y).result_
    SearchResult: 4 candidates, 10 folds of 442 samples, engine='virtual'
      best   candidate 1, alpha=0.1: score 0.4633 ± 0.0442 (mean ± standard error)
      cost   fits 1, rows_fed 442, rows_evaluated 1768
    """

    table: Table
    """``cv_results_``."""
    engines: list[str]
    """The engine of each candidate."""
    cost: dict[str, int]
    """Exact counts of the work, over all candidates."""
    notes: list[str]
    folds: Folds | Splits
    n_candidates: int
    """How many there were to be; fewer are in the table if the search is partial."""
    best: int | None
    metric: str

    @classmethod
    def of(
        cls,
        table: Table,
        found: Evaluation,
        *,
        folds: Folds | Splits,
        n_candidates: int,
        best: int | None,
        metric: str,
        notes: list[str],
    ) -> SearchResult:
        """Sum up."""
        finished = [found.candidates[position] for position in sorted(found.candidates)]
        if found.stopped is not None:
            notes = [
                f"partial: {found.stopped}, {len(finished)} of {n_candidates} candidates are "
                "finished",
                *notes,
            ]
        for metric_ in table.pooled:
            notes.append(
                f"{metric_} is not defined on every test set: mean_test_{metric_} is that of all "
                "held-out predictions together"
            )
        return cls(
            table=table,
            engines=[candidate.engine.name for candidate in finished],
            cost=_total([candidate.cost for candidate in finished]),
            notes=[*notes, *found.notes],
            folds=folds,
            n_candidates=n_candidates,
            best=best,
            metric=metric,
        )

    @property
    def partial(self) -> bool:
        """Whether some candidates are not finished."""
        return len(self.engines) < self.n_candidates

    def scores(self, metric: str | None = None) -> Floats:
        """Scores of every candidate on every test set."""
        name = self.metric if metric is None else metric
        if f"mean_test_{name}" not in self.table:
            known = [key[10:] for key in self.table if key.startswith("mean_test_")]
            raise ValueError(f"metric must be one of {known}, got {metric!r}")
        columns = [self.table[f"split{i}_test_{name}"] for i in range(len(self.folds))]
        return np.stack(columns, axis=1)

    def compare(self, to: int | None = None, *, metric: str | None = None) -> Comparison:
        """Compare all candidates with one of them.

        Parameters
        ----------
        to : int, optional
            The candidate to compare with; by default the one that was chosen.
        metric : str, optional
            Of several; by default the one that the choice was made by.

        Returns
        -------
        comparison : Comparison
            Paired differences with standard errors, and the corrected resampled t-test.
        """
        name = self.metric if metric is None else metric
        scores = self.scores(name)
        if name in self.table.pooled:
            raise ValueError(
                f"compare needs {name} on every test set, and on some it is not defined; a metric "
                "that is a mean over samples always is"
            )
        if to is None:
            to = self.best if self.best is not None else int(np.argmax(scores.mean(axis=1)))
        n_test = len(self.folds.rows) / len(self.folds)
        n_train = self.folds.n_samples - n_test
        if isinstance(self.folds, Splits):
            sizes = [len(self.folds.train(split)) for split in range(len(self.folds))]
            n_train = float(np.mean(sizes))
        return compare(
            scores,
            to=to,
            metric=name,
            params=self.table["params"],
            sizes=(n_test, n_train),
        )

    def __repr__(self) -> str:
        engines = ", ".join(repr(name) for name in dict.fromkeys(self.engines))
        lines = [
            f"SearchResult: {counted(len(self.engines), 'candidate')}, "
            f"{describe_folds(self.folds)}, engine={engines}"
        ]
        if self.best is not None:
            lines.append(f"  best   {self._best_line(self.best)}")
        cost = ", ".join(f"{name} {count}" for name, count in self.cost.items() if count)
        lines.append(f"  cost   {cost}")
        lines += [f"  note   {note}" for note in self.notes]
        return "\n".join(lines)

    def _best_line(self, best: int) -> str:
        mean = self.table[f"mean_test_{self.metric}"][best]
        named = f"{name_of(best, self.table['params'][best])}: {self.metric} {mean:.4f}"
        if self.metric in self.table.pooled or len(self.folds) < 2:
            return named
        error = self.scores()[best].std(ddof=1) / np.sqrt(len(self.folds))
        return f"{named} ± {error:.4f} (mean ± standard error)"


def _total(costs: list[dict[str, Any]]) -> dict[str, int]:
    """Counts add up over candidates, the most models alive at one time do not."""
    total: Counter[str] = Counter()
    for cost in costs:
        total.update({name: count for name, count in cost.items() if name != "peak_models"})
    peaks = [cost["peak_models"] for cost in costs if "peak_models" in cost]
    return dict(total) | ({"peak_models": max(peaks)} if peaks else {})
