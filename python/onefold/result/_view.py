"""A result as text, as a table of a notebook, and as data frames."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

import numpy as np

from .._inputs.folds import Folds, describe_folds
from ._work import work_text

if TYPE_CHECKING:
    import pandas as pd

    from ..stats._interval import Interval
    from ._cv_result import CVResult

__all__ = ["as_frame", "as_html", "as_text", "known_interval", "loss_line", "work_line"]

_PLURAL = {
    "prediction": "predictions",
    "decision_value": "decision_values",
    "log_density": "log_densities",
    "loss": "losses",
}


def as_frame(result: CVResult, by: str) -> pd.DataFrame:
    """Scores and times of each fold, or fold, prediction and loss of each sample."""
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError("to_frame needs pandas: pip install 'onefold[frames]'") from error
    if by == "fold":
        n_test = np.diff(result.folds.starts)
        columns = {k: v for k, v in result.items() if k not in ("estimator", "indices")}
        frame = pd.DataFrame({"n_test": n_test} | columns)
        return frame.rename_axis("fold")
    if by != "sample":
        raise ValueError(f"by must be 'fold' or 'sample', got {by!r}")
    if not isinstance(result.folds, Folds):
        raise ValueError("to_frame(by='sample') needs a partition; use fold_answers(i)")
    columns = {"fold": result.folds.labels}
    for name, attribute in _PLURAL.items():
        values = getattr(result, attribute)
        if values is None:
            continue
        if values.ndim == 1:
            columns[name] = values
        else:
            columns |= {f"{name}_{j}": values[:, j] for j in range(values.shape[1])}
    return pd.DataFrame(columns).rename_axis("sample")


def as_text(result: CVResult) -> str:
    """A few lines: scores, interval, time, checks, notes."""
    lines = _lines(result)
    width = max(4, *(len(name) for name, *_ in lines))
    text = [f"CVResult: {_title(result)}"]
    phrase = result._error.phrase
    for name, mean, error, pooled in lines:
        if np.isnan(mean) and not np.isnan(pooled):
            text.append(f"  {name:<{width}}  {pooled:.4f} (all held-out predictions together)")
            continue
        overall = "" if np.isnan(pooled) else f"   pooled {pooled:.4f}"
        spread = "" if len(result.folds) < 2 else f" ± {error:.4f} (mean ± {phrase})"
        text.append(f"  {name:<{width}}  {mean:.4f}{spread}{overall}")
    text += [f"  {'loss':<{width}}  {line}" for line in loss_line(result)]
    text.append(f"  {'time':<{width}}  {work_line(result)}")
    if result.check is not None:
        text.append(f"  {'check':<{width}}  {result.check}")
    if result.certificates is not None:
        labels = ("loo", "")
        for label, (what, count, share) in zip(labels, result.certificates.lines, strict=True):
            text.append(f"  {label:<{width}}  {what:<24}{count:>8}{share:>7.1f} %")
    text += [f"  {'note':<{width}}  {note}" for note in result.notes]
    return "\n".join(text)


def as_html(result: CVResult) -> str:
    """The same as a table, with the checks of the report."""
    cells = "".join(
        f"<tr><td>{html.escape(name)}</td>{_cells(mean, error, pooled)}</tr>"
        for name, mean, error, pooled in _lines(result)
    )
    certified = [] if result.certificates is None else result.certificates.lines
    remarks = [f"{what}: {count} ({share:.1f} %)" for what, count, share in certified]
    remarks = [*loss_line(result), work_line(result), *remarks, *result.notes]
    notes = "<br>".join(html.escape(remark) for remark in remarks)
    return (
        f"<table><caption>{html.escape(_title(result))}</caption>"
        f"<thead><tr><th>metric</th><th>mean</th><th>{result._error.phrase}</th><th>pooled</th>"
        f"</tr></thead><tbody>{cells}</tbody></table>"
        f"<small>{notes}</small>{result._checks_as_html()}"
    )


def _cells(mean: float, error: float, pooled: float) -> str:
    """Cells of a metric: empty where it is not defined and the pooled value is."""
    numbers = (mean, error) if np.isnan(pooled) else (mean, error, pooled)
    shown = [
        "" if np.isnan(number) and not np.isnan(pooled) else f"{number:.4f}" for number in numbers
    ]
    return "".join(f"<td>{number}</td>" for number in [*shown, ""][:3])


def _title(result: CVResult) -> str:
    folds = describe_folds(result.folds)
    return f"{result.estimator_name}, {folds}, engine={result.engine!r}"


def _lines(result: CVResult) -> list[tuple[str, float, float, float]]:
    """Metric, mean, standard error, pooled."""
    return [
        (name, float(s.mean()), result._error(s), result._pooled[name])
        for name, s in result.scores.items()
    ]


def known_interval(result: CVResult) -> Interval | None:
    """The 95 % interval of the mean loss, or None where it is not defined."""
    try:
        return result.interval(level=0.95)
    except ValueError:
        return None


def loss_line(result: CVResult) -> list[str]:
    """The mean loss with its interval, in one line, or none where there is no interval."""
    known = known_interval(result)
    if known is None:
        return []
    return [f"{known.loss} {known.mean:.4g}, 95 % interval {known.low:.4g} to {known.high:.4g}"]


def work_line(result: CVResult, seconds: float | None = None) -> str:
    """The time, by default that of fits and scores, and the fits that were done and avoided."""
    if seconds is None:
        seconds = float(np.sum(result["fit_time"]) + np.sum(result["score_time"]))
    return work_text(seconds, len(result.folds), result.cost, [result.status])
