"""What the counters of the cost mean."""

from __future__ import annotations

__all__ = ["MEANINGS", "cost_rows"]

MEANINGS: dict[str, str] = {
    "fits": "models trained from nothing; a classifier of several classes may be several models",
    "rows_fed": "rows that models were trained on, counted once for every model and pass",
    "rows_evaluated": "held-out rows that were predicted",
    "rows_read": "rows read from memory; candidates that are trained together read a row once",
    "copies": "models forked or copied",
    "bytes_copied": "bytes of models that were copied",
    "merges": "models merged into others",
    "undo_entries": "overwritten values recorded, to restore a model instead of copying it",
    "peak_models": "most models in memory at one time",
    "kernel_rows": "rows of the kernel matrix that were computed",
    "cache_hits": "uses of a row of the kernel matrix that was there already",
    "smo_iterations": "iterations of sequential minimal optimisation, over all folds",
    "gradient_rows": "rows that gradients were computed from",
    "hessian_rows": "rows that Hessians, or products with them, were computed from",
    "step_fits": "fits of the steps before the last one of a pipeline",
    "step_fits_saved": "such fits that were shared by several candidates instead of repeated",
    "step_fits_shared": "fits of first steps that read texts or codes which all folds share",
}
"""Counters by name."""


def cost_rows(cost: dict[str, int]) -> list[tuple[str, int, str]]:
    """Names, counts and meanings of the counters that are not zero.

    Examples
    --------
    >>> from onefold.report._cost import cost_rows
    >>> cost_rows({"fits": 1, "merges": 0, "peak_models": 9})
    [('fits', 1, 'models trained from ...'), ('peak_models', 9, 'most models in memory at ...')]
    """
    return [(name, int(count), MEANINGS.get(name, "")) for name, count in cost.items() if count]
