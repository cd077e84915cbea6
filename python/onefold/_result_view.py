"""A result as text, as a table of a notebook, and as data frames."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

import numpy as np

from ._folds import Folds
from ._text import describe_folds
from .report._short import short_form

if TYPE_CHECKING:
    import pandas as pd

    from ._result import CVResult

__all__ = ["as_frame", "as_html", "as_text"]

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
    """A few lines: scores, cost, checks, notes."""
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
    text.append(f"  {'cost':<{width}}  {_cost(result)}")
    if result.check is not None:
        text.append(f"  {'check':<{width}}  {result.check}")
    if result.certificates is not None:
        labels = ("loo", "")
        for label, (what, count, share) in zip(labels, result.certificates.lines, strict=True):
            text.append(f"  {label:<{width}}  {what:<24}{count:>8}{share:>7.1f} %")
    text += [f"  {'note':<{width}}  {note}" for note in result.notes]
    return "\n".join(text)


def as_html(result: CVResult) -> str:
    """The same as a table."""
    cells = "".join(
        f"<tr><td>{html.escape(name)}</td>{_cells(mean, error, pooled)}</tr>"
        for name, mean, error, pooled in _lines(result)
    )
    certified = [] if result.certificates is None else result.certificates.lines
    remarks = [f"{what}: {count} ({share:.1f} %)" for what, count, share in certified]
    notes = "".join(f"<br>{html.escape(note)}" for note in remarks + result.notes)
    return (
        f"<table><caption>{html.escape(_title(result))}</caption>"
        f"<thead><tr><th>metric</th><th>mean</th><th>{result._error.phrase}</th><th>pooled</th>"
        f"</tr></thead><tbody>{cells}</tbody></table>"
        f"<small>{html.escape(_cost(result))}{notes}</small>{short_form(result)}"
    )


def _cells(mean: float, error: float, pooled: float) -> str:
    """Cells of a metric: empty where it is not defined and the pooled value is."""
    numbers = (mean, error) if np.isnan(pooled) else (mean, error, pooled)
    shown = ["" if np.isnan(own) and not np.isnan(pooled) else f"{own:.4f}" for own in numbers]
    return "".join(f"<td>{own}</td>" for own in [*shown, ""][:3])


def _title(result: CVResult) -> str:
    folds = describe_folds(result.folds)
    return f"{result.estimator_name}, {folds}, engine={result.engine!r}"


def _lines(result: CVResult) -> list[tuple[str, float, float, float]]:
    """Metric, mean, standard error, pooled."""
    return [
        (name, float(s.mean()), result._error(s), result._pooled[name])
        for name, s in result.scores.items()
    ]


def _cost(result: CVResult) -> str:
    return ", ".join(f"{name} {count}" for name, count in result.cost.items() if count)
