"""Paired differences between candidates.

All candidates are scored on the same test sets, so their differences are taken fold by fold. Folds
share training rows, which makes the plain standard error too small; C. Nadeau and Y. Bengio,
*Inference for the generalization error*, Machine Learning 52 (2003), correct it: for J test sets
of n₂ rows each, and training sets of n₁,

    se² = (1/J + n₂/n₁)·s²,    t = mean difference / se, with J − 1 degrees of freedom.

It holds for k-fold, repeated k-fold and Monte-Carlo alike, as an approximation.
"""

from __future__ import annotations

import html
from dataclasses import dataclass, fields
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

from .._result import counted

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Comparison", "compare", "describe", "name_of"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Comparison:
    """Candidates against one of them, the best first.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import Ridge
    >>> import onefold
    >>> X, y = load_diabetes(return_X_y=True)
    >>> search = onefold.GridSearchCV(Ridge(), {"alpha": [0.01, 1, 100]}, cv=10).fit(X, y)
    >>> search.compare()
    score of each candidate minus that of candidate 0, alpha=0.01, on 10 test sets
      candidate     mean  difference  std_error  corrected_error        t       p  params
              0   0.4629      0.0000     0.0000           0.0000      nan     nan  alpha=0.01
              1   0.4054     -0.0575     0.0213           0.0310  -1.8552  0.0965  alpha=1
              2  -0.0140     -0.4769     0.0398           0.0578  -8.2517  0.0000  alpha=100
    """

    metric: str
    to: int
    """The candidate that the others are compared with."""
    n_test_sets: int
    candidate: NDArray[np.int64]
    mean: Floats
    difference: Floats
    """The mean of the paired differences: candidate minus `to`."""
    std_error: Floats
    """Their standard error, as if test sets were independent."""
    corrected_error: Floats
    """The same, corrected for the rows that training sets share."""
    t: Floats
    p: Floats
    """Of both tails of the corrected resampled t-test."""
    params: list[dict[str, Any]]

    def _columns(self) -> dict[str, Any]:
        names = [column.name for column in fields(self)][3:]
        return {name: getattr(self, name) for name in names}

    def to_frame(self) -> pd.DataFrame:
        """Return a pandas data frame with one row per candidate."""
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("to_frame needs pandas: pip install 'onefold[frames]'") from error
        return pd.DataFrame(self._columns()).set_index("candidate")

    def _title(self) -> str:
        own = self.params[int(np.flatnonzero(self.candidate == self.to)[0])]
        return (
            f"{self.metric} of each candidate minus that of {name_of(self.to, own)}, "
            f"on {counted(self.n_test_sets, 'test set')}"
        )

    def _cells(self) -> list[list[str]]:
        columns = self._columns()
        rows = zip(*columns.values(), strict=True)
        shown = [[_show(value) for value in row] for row in rows]
        return [list(columns), *shown]

    def __repr__(self) -> str:
        cells = self._cells()
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines = [self._title()]
        for row in cells:
            padded = [cell.rjust(width) for cell, width in zip(row[:-1], widths, strict=False)]
            lines.append("  " + "  ".join([*padded, row[-1]]))
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        head, *rows = self._cells()
        lines = [f"<tr>{''.join(f'<td>{html.escape(c)}</td>' for c in row)}</tr>" for row in rows]
        return (
            f"<table><caption>{html.escape(self._title())}</caption>"
            f"<thead><tr>{''.join(f'<th>{name}</th>' for name in head)}</tr></thead>"
            f"<tbody>{''.join(lines)}</tbody></table>"
        )


def _show(value: Any) -> str:
    if isinstance(value, dict):
        return describe(value)
    return f"{value:.4f}" if isinstance(value, (float, np.floating)) else str(value)


def describe(params: dict[str, Any]) -> str:
    """Describe parameters in short.

    Examples
    --------
    >>> import numpy as np
    >>> from onefold.search._comparison import describe
    >>> describe({"C": np.float64(0.1), "kernel": "rbf", "shrinking": True})
    "C=0.1, kernel='rbf', shrinking=True"
    """
    return ", ".join(f"{name}={_short(value)}" for name, value in params.items())


def _short(value: Any) -> str:
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    return f"{value:g}" if is_number else repr(value)


def name_of(position: int, params: dict[str, Any]) -> str:
    """Name a candidate by its position and its parameters, if it has any.

    Examples
    --------
    >>> from onefold.search._comparison import name_of
    >>> name_of(3, {"alpha": 0.5}), name_of(0, {})
    ('candidate 3, alpha=0.5', 'candidate 0')
    """
    return ", ".join(filter(None, (f"candidate {position}", describe(params))))


def compare(
    scores: Floats,
    *,
    to: int,
    metric: str,
    params: list[dict[str, Any]],
    sizes: tuple[float, float],
) -> Comparison:
    """Compare candidates, given their scores on every test set.

    Parameters
    ----------
    scores : array of shape (n_candidates, n_test_sets)
    to : int
    metric : str
    params : list of dict
    sizes : (float, float)
        Rows of a test set and of a training set, on average.
    """
    n_candidates, n_sets = scores.shape
    if not isinstance(to, Integral) or not 0 <= to < n_candidates:
        raise ValueError(f"to={to!r}: there are {n_candidates} candidates, from 0")
    means = scores.mean(axis=1)
    order = np.argsort(-means, kind="stable")
    paired = scores - scores[to]
    variance = paired.var(axis=1, ddof=1) if n_sets > 1 else np.full(n_candidates, np.nan)
    corrected = np.sqrt((1 / n_sets + sizes[0] / sizes[1]) * variance)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = paired.mean(axis=1) / corrected
    p = 2 * student.sf(np.abs(t), n_sets - 1) if n_sets > 1 else np.full(n_candidates, np.nan)
    return Comparison(
        metric=metric,
        to=to,
        n_test_sets=n_sets,
        candidate=order,
        mean=means[order],
        difference=paired.mean(axis=1)[order],
        std_error=np.sqrt(variance / n_sets)[order],
        corrected_error=corrected[order],
        t=t[order],
        p=np.asarray(p)[order],
        params=[params[position] for position in order],
    )
