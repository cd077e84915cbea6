"""The result of a search besides ``cv_results_``."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..._engines import Task
from ..._engines.costs import total_cost
from ..._engines.status import Status
from ..._inputs.folds import Folds, Splits, describe_folds
from ..._utils.text import counted, name_of, show
from ...result import _json
from ...result._cv_result import CVResult
from ...result._report_methods import HasReport
from ...result._work import work_text
from ...stats._comparison import (
    Comparison,
    Losses,
    check_candidate,
    check_only_one,
    compare_losses,
    compare_scores,
    loss_intervals,
)
from ...stats._interval import Interval, check_level, why_not_independent
from ...stats._standard_error import StandardError
from .evaluate import Evaluation
from .table import Table

if TYPE_CHECKING:
    import os

    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["SearchResult"]

Floats = NDArray[np.float64]

MAX_ROWS_SHOWN = 20
"""Candidates in the table of a notebook, the best first."""


@dataclass(frozen=True)
class SearchResult(HasReport):
    """Engines, costs and notes of a search, and the held-out answers of the chosen candidate.

    ``predictions``, ``decision_values``, ``probabilities``, ``log_densities``, ``distances`` and
    ``losses`` are those of `chosen`.

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
      time   ..., 1 fit instead of 40
    >>> search = onefold.GridSearchCV(Ridge(), grid, cv=10, keep="all").fit(X, y)
    >>> search.result_.predictions.round(1)[:3], search.result_.results[0].predictions.round(1)[:3]
    (array([198.4,  72.6, 171.9]), array([203. ,  68.3, 174.1]))
    """

    table: Table
    """``cv_results_``."""
    engines: list[str]
    """The engine that solved each candidate."""
    cost: dict[str, int]
    """Exact counts of the work, over all candidates."""
    notes: list[str]
    folds: Folds | Splits
    n_candidates: int
    """How many there were to be; fewer are in the table if the search is partial."""
    best: int | None
    metric: str
    has_groups: bool = False
    """Whether the samples are in groups."""
    results: dict[int, CVResult] = field(default_factory=dict, repr=False)
    """Results of the candidates whose held-out answers are kept: of the chosen one, or of all."""
    candidate_losses: list[Losses | None] = field(default_factory=list, repr=False)
    """The loss of every held-out row in test order, by candidate; None where it is not kept."""
    statuses: list[Status] = field(default_factory=list, repr=False)
    """What solved the folds of each candidate, how closely, and which were refitted."""
    settings: dict[str, str] = field(default_factory=dict, repr=False)
    """The call that made it, for `script`."""

    @classmethod
    def of(
        cls,
        table: Table,
        evaluation: Evaluation,
        *,
        task: Task,
        n_candidates: int,
        best: int | None,
        metric: str,
        notes: list[str],
        results: dict[int, CVResult],
    ) -> SearchResult:
        """Sum up."""
        finished = evaluation.finished
        statuses = [candidate.status for candidate in finished]
        if evaluation.stopped is not None:
            notes = [
                f"partial: {evaluation.stopped}, {len(finished)} of {n_candidates} candidates are "
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
            engines=[candidate.engine_name for candidate in finished],
            cost=total_cost([candidate.cost for candidate in finished]),
            notes=list(dict.fromkeys([*notes, *evaluation.notes, *status_notes(statuses)])),
            folds=task.folds,
            n_candidates=n_candidates,
            best=best,
            metric=metric,
            has_groups=task.has_groups,
            results=results,
            candidate_losses=[
                candidate.losses
                if candidate.targets and candidate.targets.task.folds is task.folds
                else None
                for candidate in finished
            ],
            statuses=statuses,
        )

    @property
    def partial(self) -> bool:
        """Whether some candidates are not finished."""
        return len(self.engines) < self.n_candidates

    @property
    def chosen(self) -> CVResult:
        """The result of the chosen candidate."""
        if self.best is None:
            raise ValueError(
                "no candidate was chosen: with several metrics, refit must name one of them"
            )
        if self.best not in self.results:
            raise ValueError(
                "the held-out answers of the chosen candidate were not kept: see keep= of the "
                "search, and notes"
            )
        return self.results[self.best]

    @property
    def predictions(self) -> NDArray[Any] | None:
        """The held-out prediction of each sample."""
        return self.chosen.predictions

    @property
    def decision_values(self) -> NDArray[Any] | None:
        """Signed distances from the decision, of classifiers that have them."""
        return self.chosen.decision_values

    @property
    def probabilities(self) -> Any:
        """Class probabilities, of classifiers that have them: a list for several outputs."""
        return self.chosen.probabilities

    @property
    def log_densities(self) -> NDArray[Any] | None:
        """Log densities, of density estimators."""
        return self.chosen.log_densities

    @property
    def distances(self) -> NDArray[Any] | None:
        """Distances from the centres, of clusterings."""
        return self.chosen.distances

    @property
    def losses(self) -> Floats | None:
        """The loss of each sample while it was held out; `loss` names it."""
        return self.chosen.losses

    @property
    def loss(self) -> str | None:
        """The name of the loss."""
        return self.chosen.loss

    def scores(self, metric: str | None = None) -> Floats:
        """Scores of every candidate on every test set."""
        name = self.metric if metric is None else metric
        if f"mean_test_{name}" not in self.table:
            raise ValueError(f"metric must be one of {self._metrics()}, got {metric!r}")
        return self.table.split_scores(f"test_{name}")

    def compare(
        self,
        to: int | None = None,
        *,
        metric: str | None = None,
        loss: str | None = None,
        rope: float | None = None,
        level: float = 0.95,
    ) -> Comparison:
        """Compare all candidates with one of them.

        Parameters
        ----------
        to : int, optional
            The candidate to compare with; by default the one that was chosen.
        metric : str, optional
            Of several; by default the one that the choice was made by.
        loss : str, optional
            Compare by minus the mean of a loss over the samples of each test set instead, as
            `onefold.compare` does. The usual loss (zero-one of a classifier, squared error of a
            regression) is known for all candidates as far as `MAX_KEPT_BYTES` allows, others with
            ``keep="all"``.
        rope : float, optional
            The region of practical equivalence, in units of the metric: adds the probabilities that
            a candidate is worse, equivalent, or better (Bayesian correlated t-test).
        level : float, default=0.95
            Of the confidence ``intervals`` of the mean differences of losses; there are some where
            the engine gave predictions for independent samples, each held out once.

        Returns
        -------
        comparison : Comparison
            Paired differences with standard errors, and the corrected resampled t-test.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from sklearn.linear_model import Ridge
        >>> import onefold
        >>> X, y = load_diabetes(return_X_y=True)
        >>> search = onefold.GridSearchCV(Ridge(), {"alpha": [0.1, 10]}, cv="loo",
        ...                               scoring="neg_mean_squared_error").fit(X, y)
        >>> search.compare(loss="squared error")
        negative squared error loss of each candidate minus that of candidate 0, alpha=0.1, on ...
        """
        if to is not None:
            check_candidate(to, len(self.engines))
        if loss is not None:
            check_only_one(metric, loss)
            return compare_losses(
                [self._losses_of(candidate, loss) for candidate in range(len(self.engines))],
                loss=loss,
                to=self.best if to is None else to,
                params=self.table["params"],
                folds=self.folds,
                has_groups=self.has_groups,
                rope=rope,
                level=level,
            )
        name = self.metric if metric is None else metric
        scores = self.scores(name)
        if name in self.table.pooled:
            raise ValueError(
                f"compare needs {name} on every test set, and on some it is not defined; a metric "
                "that is a mean over samples always is, and so is a loss: pass loss="
            )
        if to is None:
            to = self.best if self.best is not None else int(np.argmax(scores.mean(axis=1)))
        return compare_scores(
            scores,
            to=to,
            metric=name,
            params=self.table["params"],
            folds=self.folds,
            rope=rope,
            intervals=self._intervals(to, level),
        )

    def _intervals(self, to: int, level: float) -> list[Interval | None] | str:
        """Intervals of the mean differences of losses, where these are kept."""
        check_level(level)
        is_unfit = why_not_independent(self.folds, self.has_groups) is not None
        if is_unfit or not any(self.candidate_losses):
            return ""
        return loss_intervals(
            self.candidate_losses, self.folds, has_groups=self.has_groups, to=to, level=level
        )

    def _losses_of(self, candidate: int, loss: str) -> Floats:
        """The losses of a candidate in test order."""
        if candidate in self.results and self.results[candidate].folds is self.folds:
            return self.results[candidate].losses_in_test_order(loss)
        known = self.candidate_losses[candidate] if self.candidate_losses else None
        if known is None or known[0] != loss:
            raise ValueError(
                f"loss={loss!r} of {name_of(candidate, self.table['params'][candidate])} is not "
                "known, nor are its held-out answers: a search with keep='all' keeps them"
            )
        return known[1]

    def to_frame(self) -> pd.DataFrame:
        """Return a pandas data frame with one row per candidate.

        Its engine and parameters, then of every metric the mean score, its standard error (see
        `onefold.stats.StandardError`) and the rank, and the mean times of a fold.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from sklearn.linear_model import Ridge
        >>> import onefold
        >>> X, y = load_diabetes(return_X_y=True)
        >>> search = onefold.GridSearchCV(Ridge(), {"alpha": [0.01, 1, 100]}, cv=10).fit(X, y)
        >>> frame = search.result_.to_frame()
        >>> list(frame.columns)[:4], frame.rank_test_score.tolist()
        (['engine', 'param_alpha', 'mean_test_score', 'std_error_test_score'], [1, 2, 3])
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("to_frame needs pandas: pip install 'onefold[frames]'") from error
        return pd.DataFrame(self._columns()).rename_axis("candidate")

    def _columns(self) -> dict[str, Any]:
        """Columns of the candidates for tables and frames."""
        params = self.table["params"]
        names = dict.fromkeys(name for candidate in params for name in candidate)
        columns: dict[str, Any] = {"engine": self.engines}
        columns |= {
            f"param_{name}": [candidate.get(name) for candidate in params] for name in names
        }
        error = StandardError.of(self.folds)
        for metric in self._metrics():
            columns[f"mean_test_{metric}"] = self.table[f"mean_test_{metric}"]
            columns[f"std_error_test_{metric}"] = error(self.scores(metric))
            columns[f"rank_test_{metric}"] = self.table[f"rank_test_{metric}"]
        return columns | {name: self.table[name] for name in ("mean_fit_time", "mean_score_time")}

    def _metrics(self) -> list[str]:
        return [key[10:] for key in self.table if key.startswith("mean_test_")]

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str | None:
        """Save as JSON: exact floats, arrays with their dtypes, no NaN literals.

        Parameters of candidates that JSON cannot hold, such as estimators, are left out; the notes
        of what is loaded name them. Of the losses of samples, those of `results` are saved.

        Parameters
        ----------
        path : str or PathLike, optional
            The file to write; without it, the text is returned.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from sklearn.linear_model import Ridge
        >>> import onefold
        >>> X, y = load_diabetes(return_X_y=True)
        >>> search = onefold.GridSearchCV(Ridge(), {"alpha": [0.01, 1, 100]}, cv=10).fit(X, y)
        >>> again = onefold.SearchResult.from_json(search.result_.to_json())
        >>> repr(again) == repr(search.result_)
        True
        """
        kinds = [key[5:] for key in self.table if re.fullmatch("mean_(test|train)_.*", key)]
        by_split = {kind: self.table.split_scores(kind) for kind in kinds}
        state: dict[str, Any] = {
            "table": {k: v for k, v in self.table.items() if not re.match(r"split\d+_t", k)},
            "by_split": by_split,
            "pooled": self.table.pooled,
        }
        state["results"] = {
            str(position): self._saved(result) for position, result in self.results.items()
        }
        state["targets"] = self.results[min(self.results)].targets if self.results else None
        state["statuses"] = [vars(status) for status in self.statuses]
        aside = ("table", "results", "candidate_losses", "statuses")
        rest = [field.name for field in fields(self) if field.name not in aside]
        return _json.dump(
            "SearchResult", state | {name: getattr(self, name) for name in rest}, path
        )

    def _saved(self, result: CVResult) -> dict[str, Any]:
        """A result without what all results have in common."""
        shared = {"targets"} | ({"folds"} if result.folds is self.folds else set())
        return {name: value for name, value in result._state().items() if name not in shared}

    @classmethod
    def from_json(cls, source: str | os.PathLike[str]) -> SearchResult:
        """Load what `to_json` has saved.

        Parameters
        ----------
        source : str or PathLike
            The text, or the path of the file.
        """
        state, left_out = _json.load("SearchResult", source)
        with _json.reading("SearchResult"):
            table = Table(state.pop("table"))
            table.pooled = state.pop("pooled")
            for kind, scores in state.pop("by_split").items():
                table.add_splits(kind, list(scores))
            shared = {"folds": state["folds"], "targets": state.pop("targets")}
            results = {
                int(position): CVResult._from_state(shared | saved)
                for position, saved in state.pop("results").items()
            }
            statuses = [Status(**saved) for saved in state.pop("statuses")]
            result = cls(table=table, results=results, statuses=statuses, **state)
        if left_out:
            result.notes.append(f"not saved: {', '.join(left_out)}")
        return result

    def _title(self) -> str:
        engines = ", ".join(repr(name) for name in dict.fromkeys(self.engines))
        return (
            f"{counted(len(self.engines), 'candidate')}, {describe_folds(self.folds)}, "
            f"engine={engines}"
        )

    def _work(self, seconds: float | None = None) -> str:
        """The time, by default that of fits and scores, and the fits that were done and avoided."""
        n_sets = len(self.folds)
        if seconds is None:
            times = [self.table[name] for name in ("mean_fit_time", "mean_score_time")]
            seconds = n_sets * float(np.nansum(times))
        return work_text(seconds, n_sets * len(self.engines), self.cost, self.statuses)

    def __repr__(self) -> str:
        lines = [f"SearchResult: {self._title()}"]
        if self.best is not None:
            lines.append(f"  best   {self._best_line(self.best)}")
        lines.append(f"  time   {self._work()}")
        lines += [f"  note   {note}" for note in self.notes]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        columns = self._columns()
        order = np.argsort(self.table[f"rank_test_{self.metric}"], kind="stable")
        rows = [
            [str(position), *(show(values[position]) for values in columns.values())]
            for position in order[:MAX_ROWS_SHOWN].tolist()
        ]
        head = "".join(f"<th>{html.escape(name)}</th>" for name in ("candidate", *columns))
        body = "".join(
            f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>" for row in rows
        )
        remarks = [self._work(), *self.notes]
        n_left = len(order) - len(rows)
        if n_left > 0:
            remarks.insert(0, f"{counted(n_left, 'candidate')} not shown")
        return (
            f"<table><caption>{html.escape(self._title())}</caption><thead><tr>{head}</tr></thead>"
            f"<tbody>{body}</tbody></table>"
            f"<small>{'<br>'.join(html.escape(remark) for remark in remarks)}</small>"
            f"{self._checks_as_html()}"
        )

    def _best_line(self, best: int) -> str:
        mean = self.table[f"mean_test_{self.metric}"][best]
        named = f"{name_of(best, self.table['params'][best])}: {self.metric} {mean:.4f}"
        if self.metric in self.table.pooled or len(self.folds) < 2:
            return named
        error = StandardError.of(self.folds)
        return f"{named} ± {error(self.scores()[best]):.4f} (mean ± {error.phrase})"

    def plot(self, kind: str | None = None, ax: Axes | None = None, **options: Any) -> Axes:
        """Plot with matplotlib; `onefold.plotting.plot_search_result` has all kinds and options."""
        from ...plotting import plot_search_result

        return plot_search_result(self, kind, ax, **options)


def status_notes(statuses: Sequence[Status]) -> list[str]:
    """What the statuses of all candidates say, once for each engine."""
    by_engine: dict[str, list[Status]] = {}
    for status in statuses:
        by_engine.setdefault(status.solved_by, []).append(status)
    return [note for parts in by_engine.values() for note in Status.joined(parts).notes]
