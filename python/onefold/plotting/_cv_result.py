"""The kinds of plot of a cross-validation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._cost import draw_cost, why_no_cost
from ._curves import curve_size, draw_calibration, draw_precision_recall, draw_roc
from ._held_out import why_no_classes, why_no_probabilities, why_no_regression, why_no_responses
from ._kinds import Kind, draw
from ._predictions import draw_actual_vs_predicted, draw_confusion_matrix, draw_residuals
from ._samples import draw_influence, draw_losses, why_no_losses
from ._scores import draw_scores, why_no_scores
from ._tree import draw_tree, why_no_tree

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..result._cv_result import CVResult

__all__ = ["CV_KINDS", "plot_cv_result"]

CV_KINDS = {
    "scores": Kind(draw_scores, why_no_scores),
    "roc": Kind(draw_roc, why_no_responses, curve_size),
    "precision_recall": Kind(draw_precision_recall, why_no_responses, curve_size),
    "calibration": Kind(draw_calibration, why_no_probabilities, curve_size),
    "confusion_matrix": Kind(draw_confusion_matrix, why_no_classes, (5.6, 4.8)),
    "residuals": Kind(draw_residuals, why_no_regression),
    "actual_vs_predicted": Kind(draw_actual_vs_predicted, why_no_regression, (5.6, 5.0)),
    "losses": Kind(draw_losses, why_no_losses),
    "influence": Kind(draw_influence, why_no_losses),
    "tree": Kind(draw_tree, why_no_tree, (8.0, 4.4)),
    "cost": Kind(draw_cost, why_no_cost),
}
"""Kinds of plot by name, in the order in which a default is looked for."""


def plot_cv_result(
    result: CVResult, kind: str | None = None, ax: Axes | None = None, **options: Any
) -> Axes:
    """Plot a result with matplotlib; ``result.plot(kind, ax, **options)`` is the same.

    Parameters
    ----------
    result : CVResult
    kind : str, optional
        By default the first of these that applies:

        - ``"scores"``: the scores of the folds, their mean and its standard error; with many folds,
          how many have each score. Options: ``metric``, one of several; ``level``, to draw an
          interval by Student's t instead of the standard error.
        - ``"roc"`` and ``"precision_recall"``: a curve for each fold and one for all of them; with
          several classes, one curve per class. Options: ``pos_label``, one of the classes;
          ``response``, ``"predict_proba"`` or ``"decision_function"``; ``folds`` and ``chance``,
          whether to draw the folds and the line of chance.
        - ``"calibration"``: frequencies against predicted probabilities. Options: ``pos_label``,
          ``folds``, ``n_bins`` and ``strategy``.
        - ``"confusion_matrix"``: counts of all held-out predictions. Options: ``fold``, one of the
          folds; ``normalize``, ``cmap`` and ``colorbar`` as in scikit-learn.
        - ``"residuals"`` and ``"actual_vs_predicted"``: points of a regression. Options: ``fold``;
          ``output``, one of several; ``subsample``, the largest number of points, or None.
        - ``"losses"``: the held-out loss of every sample, with the interval of the mean. Options:
          ``loss``, see `onefold.CVResult.losses_in_test_order`; ``n_labels``, the number of largest
          losses that are labelled; ``level`` of the interval.
        - ``"influence"``: samples in the order of their losses or, with ``diagnostics`` from
          `onefold.diagnostics`, Cook's distances against leverages. Options: ``loss``, ``output``,
          ``n_labels``.
        - ``"tree"``: the recursion of TreeCV, for up to 32 folds.
        - ``"cost"``: rows fed against the number of folds, by the tree and by refits.
    ax : matplotlib Axes, optional
        By default those of a new figure.
    **options
        Options of the kind. Curves and residuals ignore sample weights.

    Returns
    -------
    ax : matplotlib Axes

    Raises
    ------
    ValueError
        If the kind does not apply; the message says why, and which kinds do.
    TypeError
        For an option that the kind does not have.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> import onefold
    >>> from onefold.plotting import plot_cv_result
    >>> X, y = load_iris(return_X_y=True)
    >>> result = onefold.cross_validate(GaussianNB(), X, y, cv=10)
    >>> ax = plot_cv_result(result, "confusion_matrix", normalize="true")
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('Predicted label', 'True label')
    """
    return draw(result, CV_KINDS, kind, ax, options)
