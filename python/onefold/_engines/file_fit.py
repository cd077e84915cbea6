"""Fits to rows on disk."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier

from .. import _core
from .._inputs.files import FileRows
from ..learners._base import NativeEstimator

__all__ = ["fit_to_file"]


def fit_to_file(
    estimator: Any, rows: FileRows, y: Any, weights: Any, order_seed: int | None = None
) -> Any:
    """Fit a clone of an estimator to all rows, block by block.

    Parameters
    ----------
    estimator : estimator
        A native learner, or one that has ``partial_fit`` and does not depend on the order of rows.
    rows : FileRows
    y : array of shape (n_samples,) or None
    weights : array of shape (n_samples,) or None
    order_seed : int, optional
        The seed of a random order, of native learners.
    """
    fitted = clone(estimator)
    if isinstance(fitted, NativeEstimator):
        targets, n_targets = fitted._targets(y, len(rows))
        learner = fitted._make_learner(rows.shape[1], n_targets)
        model = _core.stored_fit(learner, (rows.on_disk, targets, n_targets, weights), order_seed)
        return fitted._with_model(model, rows.shape[1])
    if not hasattr(fitted, "partial_fit"):
        raise ValueError(
            f"{type(fitted).__name__} cannot be fitted to rows on disk, since it has no "
            "partial_fit; refit=False evaluates the candidates only"
        )
    keywords: dict[str, Any] = {"classes": np.unique(y)} if is_classifier(fitted) else {}
    for part, block in rows.blocks():
        targets = () if y is None else (np.asarray(y)[part],)
        if weights is not None:
            keywords["sample_weight"] = weights[part]
        fitted.partial_fit(block, *targets, **keywords)
        keywords.pop("classes", None)
    return fitted
