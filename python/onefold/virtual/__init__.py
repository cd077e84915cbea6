"""Virtual k-fold beyond `cross_validate`: penalty paths, diagnostics, nonlinear least squares.

Leaving rows out of a least-squares fit has a closed form, so a whole grid of penalties, the
influence of every row, the predictive distributions of a Gaussian process, or the folds of a
nonlinear fit cost about as much as one fit.
"""

from __future__ import annotations

from ._gaussian_process import gaussian_process_predict
from ._influence import Diagnostics, diagnostics
from ._nonlinear import LinearizationWarning, VirtualCV, virtual_cv
from ._path import RidgePath, ridge_path

__all__ = [
    "Diagnostics",
    "LinearizationWarning",
    "RidgePath",
    "VirtualCV",
    "diagnostics",
    "gaussian_process_predict",
    "ridge_path",
    "virtual_cv",
]
