"""What a report says, before it becomes a page or a text."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from .._inputs.folds import Folds, describe_folds
from .._scoring.losses import shaped_like
from .._utils.text import counted, describe, name_of
from ..result._settings import metric_labels, versions
from ..result._view import known_interval, work_line
from ..stats._standard_error import StandardError
from . import checks
from ._call import call_of_result, call_of_search
from ._check import Check
from ._cost import cost_rows
from ._number import with_error

if TYPE_CHECKING:
    from ..model_selection._search.result import SearchResult
    from ..result._cv_result import CVResult

__all__ = ["Content", "Headline", "Table", "content_of"]

MAX_FOLDS_LISTED = 50
"""Test sets up to which their scores are listed."""

MAX_CLASSES_LISTED = 12
"""Classes up to which there is a confusion matrix."""

MAX_CANDIDATES_LISTED = 20
"""Candidates that are listed, the best first."""

_MEANING = {
    "disjoint": (
        "± is the standard error of the mean over {sets}: their standard deviation divided by the "
        "root of their number. The training sets overlap, which it leaves out of account, so read "
        "it as a guide."
    ),
    "repeated": (
        "± is the standard error of the mean of one partition: all partitions rest on the same "
        "samples, so repeating them does not make it smaller. The training sets overlap, which it "
        "leaves out of account, so read it as a guide."
    ),
    "overlapping": (
        "± is the standard error of the mean over {sets}, corrected for the samples that they "
        "share (Nadeau and Bengio), so read it as a guide."
    ),
}
"""What the error bar is, by the form of the standard error."""


@dataclass(frozen=True)
class Headline:
    """One metric: its mean over test sets, its error, and its value on all samples together."""

    label: str
    mean: float
    error: float
    pooled: float

    @property
    def text(self) -> str:
        """The mean with its error, or the pooled value where there is no mean."""
        if math.isnan(self.mean):
            return "undefined" if math.isnan(self.pooled) else f"{self.pooled:.4g} (pooled)"
        return with_error(self.mean, self.error)


@dataclass(frozen=True)
class Table:
    """A table with its heading; the first column names the rows."""

    title: str
    head: list[str]
    rows: list[list[str]]
    caption: str = ""
    shares: list[list[float]] | None = None
    """How dark each cell but those of the first column is, from 0 to 1."""
    is_long: bool = False
    """Whether a page hides it at first."""


@dataclass(frozen=True)
class Content:
    """All parts of a report."""

    title: str
    subtitle: str
    headlines: list[Headline]
    meanings: list[str]
    checks: list[Check]
    labels: dict[str, str]
    """What to call each metric."""
    tables: list[Table]
    settings: list[tuple[str, str]]
    cost: list[tuple[str, int, str]]
    notes: list[str]
    call: str
    versions: dict[str, str] = field(default_factory=dict)


def content_of(result: CVResult | SearchResult) -> Content:
    """Collect what a report says."""
    from ..model_selection._search.result import SearchResult

    return _of_search(result) if isinstance(result, SearchResult) else _of_result(result)


# A cross-validation


def _of_result(result: CVResult) -> Content:
    settings = getattr(result, "settings", None) or {}
    labels = _labels(result, settings)
    return Content(
        title=settings.get("name", result.estimator_name),
        subtitle=f"Cross-validation, {describe_folds(result.folds)}, engine {result.engine!r}",
        headlines=_headlines(result, labels),
        meanings=_meanings(result),
        checks=checks(result),
        labels=labels,
        tables=_result_tables(result, labels),
        settings=_settings(result, settings, labels),
        cost=cost_rows(result.cost),
        notes=_notes(result),
        call=call_of_result(result),
        versions=dict(settings.get("versions") or versions()),
    )


def _labels(result: CVResult, settings: dict[str, Any]) -> dict[str, str]:
    """What to call each metric."""
    labels = {name: name for name in result.scores}
    if "score" in labels:  # the name of a metric that has none
        text = settings.get("scoring", {}).get("score", "")
        label = text if text.endswith(".score") else "score"
        labels["score"] = metric_labels(settings).get("score", label)
    return labels


def _headlines(result: CVResult, labels: dict[str, str]) -> list[Headline]:
    return [
        Headline(
            labels[name],
            float(score.mean()),
            float(result._error(score)) if len(score) > 1 else float("nan"),
            float(result._pooled.get(name, float("nan"))),
        )
        for name, score in result.scores.items()
    ]


def _meanings(result: CVResult) -> list[str]:
    n_sets = len(result.folds)
    sentences = []
    if n_sets < 2:
        sentences.append("One test set has no standard error.")
    else:
        sets = counted(n_sets, "test set")
        sentences.append(_MEANING[result.std_error_form].format(sets=sets))
        if n_sets < 10:
            doubt = 1 / math.sqrt(2 * (n_sets - 1))
            sentences.append(
                f"It rests on {sets} only, and is itself uncertain by about {doubt:.0%}."
            )
    sentences.append(
        "Pooled is the metric of all held-out predictions taken together; it need not be the mean."
    )
    known = known_interval(result)
    if known is None:
        return sentences
    sentences.append(
        f"The mean {known.loss} loss of the fold models on new samples is between {known.low:.4g} "
        f"and {known.high:.4g} with confidence {known.level:g}, if the samples are independent "
        "(Bayle et al.); it is not that of a model fitted to all rows."
    )
    return sentences


def _notes(result: CVResult) -> list[str]:
    lines = [f"{what}: {count} ({share:.1f} %)" for what, count, share in _certified(result)]
    if result.check is not None:
        lines.append(f"check: {result.check}")
    return lines + list(result.notes)


def _certified(result: CVResult) -> list[tuple[str, int, float]]:
    return [] if result.certificates is None else result.certificates.lines


def _settings(
    result: CVResult, settings: dict[str, Any], labels: dict[str, str]
) -> list[tuple[str, str]]:
    kind = "partition" if isinstance(result.folds, Folds) else f"{result.std_error_form} test sets"
    sizes = np.diff(result._starts)
    rows = counted(int(sizes.max()), "row")
    rows = rows if sizes.min() == sizes.max() else f"{sizes.min()} to {rows}"
    rows_of_table = [
        ("estimator", settings.get("estimator", result.estimator_name)),
        ("metric", ", ".join(labels.values())),
        ("test sets", f"{describe_folds(result.folds)}, {kind}, {rows} each"),
        ("engine", result.engine),
        ("time", work_line(result)),
    ]
    if settings.get("date"):
        rows_of_table.append(("date", settings["date"]))
    if result.targets is not None and result.targets.ndim == 1 and result.classes is not None:
        rows_of_table.append(("classes", f"{len(result.classes)}"))
    if result.has_groups:
        rows_of_table.append(("groups", "kept together"))
    if settings.get("arrays"):
        rows_of_table.append(("arguments of fit", ", ".join(settings["arrays"])))
    if settings.get("options"):
        rows_of_table.append(
            ("options", ", ".join(f"{k}={v}" for k, v in settings["options"].items()))
        )
    if "random_state" in settings:
        rows_of_table.append(("random_state", settings["random_state"]))
    return rows_of_table


def _result_tables(result: CVResult, labels: dict[str, str]) -> list[Table]:
    tables = []
    confusion = _confusion(result)
    if confusion is not None:
        tables.append(confusion)
    if 1 < len(result.folds) <= MAX_FOLDS_LISTED:
        sizes = np.diff(result._starts).tolist()
        columns = list(result.scores.values())
        rows = [
            [str(i), str(size), *(with_error(float(column[i]), float("nan")) for column in columns)]
            for i, size in enumerate(sizes)
        ]
        head = ["test set", "samples", *labels.values()]
        tables.append(Table("Scores of the test sets", head, rows, is_long=True))
    return tables


def _confusion(result: CVResult) -> Table | None:
    """Actual against predicted classes of all held-out samples."""
    predicted: Any = result._answers.get("predict")
    if result._loss_of_predictions != "zero-one" or result.targets is None or predicted is None:
        return None
    actual = shaped_like(np.asarray(predicted), result.targets[result._rows])
    classes, codes = np.unique(np.concatenate([actual, predicted]), return_inverse=True)
    n = len(classes)
    if n > MAX_CLASSES_LISTED or n < 2:
        return None
    cells = codes[: len(actual)] * n + codes[len(actual) :]
    counts = np.bincount(cells, minlength=n * n).reshape(n, n)
    names = [str(label) for label in classes.tolist()]
    rows = [[name, *map(str, count)] for name, count in zip(names, counts.tolist(), strict=True)]
    sums = np.maximum(counts.sum(axis=1, keepdims=True), 1)
    return Table(
        "Confusion matrix",
        ["actual / predicted", *names],
        rows,
        "Counts of held-out samples by actual class (rows) and predicted class (columns).",
        (counts / sums).tolist(),
    )


# A search


def _of_search(search: SearchResult) -> Content:
    result = search.results.get(search.best) if search.best is not None else None
    settings = (getattr(result, "settings", None) or {}) if result is not None else {}
    label = search.metric
    if result is not None:
        label = _labels(result, settings).get(search.metric, search.metric)
    chosen = _chosen(search, label)
    content = None if result is None else _of_result(result)
    engines = ", ".join(repr(name) for name in dict.fromkeys(search.engines))
    title = "Search" if content is None else f"Search: {content.title}"
    rows = [("candidates", _finished(search)), ("chosen by", label), ("time", search._work())]
    if search.best is not None:
        rows.insert(0, ("choice", name_of(search.best, search.table["params"][search.best])))
    return Content(
        title=title,
        subtitle=(
            f"{counted(len(search.engines), 'candidate')}, {describe_folds(search.folds)}, "
            f"engine {engines}"
        ),
        headlines=chosen,
        meanings=_search_meanings(search, content),
        checks=checks(search),
        labels={search.metric: label} if content is None else content.labels,
        tables=[_candidates(search, label), *([] if content is None else content.tables)],
        settings=rows + [row for row in (content.settings if content else []) if row[0] != "time"],
        cost=cost_rows(search.cost),
        notes=list(search.notes),
        call=call_of_search(search),
        versions=dict(settings.get("versions") or versions()),
    )


def _finished(search: SearchResult) -> str:
    n_done = len(search.engines)
    return f"{n_done} of {search.n_candidates}" if search.partial else str(n_done)


def _chosen(search: SearchResult, label: str) -> list[Headline]:
    if search.best is None:
        return []
    mean = float(search.table[f"mean_test_{search.metric}"][search.best])
    nan = float("nan")
    if search.metric in search.table.pooled:
        return [Headline(label, nan, nan, mean)]
    error = nan
    if len(search.folds) > 1:
        error = float(StandardError.of(search.folds)(search.scores()[search.best]))
    pooled = nan
    if search.best in search.results:
        pooled = float(search.results[search.best]._pooled.get(search.metric, nan))
    return [Headline(label, mean, error, pooled)]


def _search_meanings(search: SearchResult, content: Content | None) -> list[str]:
    optimistic = (
        "This is the score of the chosen candidate on the folds that it was chosen by, and so "
        "optimistic: check OF9 estimates by how much, nested_cross_validate avoids it."
    )
    if search.best is None:
        return ["No candidate was chosen: with several metrics, refit= names one of them."]
    sentences = (
        [] if content is None else [text for text in content.meanings if "confidence" not in text]
    )
    return [optimistic, *sentences] if len(search.engines) > 1 else sentences


def _candidates(search: SearchResult, label: str) -> Table:
    order = np.argsort(search.table[f"rank_test_{search.metric}"], kind="stable")
    means = search.table[f"mean_test_{search.metric}"]
    errors = np.full(len(means), np.nan)
    if search.metric not in search.table.pooled and len(search.folds) > 1:
        errors = StandardError.of(search.folds)(search.scores())
    rows = [
        [
            f"{position}{' (choice)' if position == search.best else ''}",
            with_error(float(means[position]), float(errors[position])),
            describe(search.table["params"][position]),
            search.engines[position],
        ]
        for position in order[:MAX_CANDIDATES_LISTED].tolist()
    ]
    n_left = len(order) - len(rows)
    caption = f"{counted(n_left, 'candidate')} with lower scores not shown." if n_left else ""
    return Table("Candidates", ["candidate", label, "parameters", "engine"], rows, caption)
