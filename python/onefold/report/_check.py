"""Numbered checks: what each asks, how it is tested, and what its verdict can be."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, metadata
from typing import Any

__all__ = ["ABOUT", "BY_URGENCY", "LEVEL", "MAX_RATIO", "About", "Check", "documentation"]

ADDRESS = "ONEFOLD_DOCS"
"""The environment variable with the address of the documentation."""

LEVEL = 0.01
"""The level of every test: how often it raises a false alarm where there is nothing to find."""

MAX_RATIO = 100
"""The ratio of the scales of features that OF10 begins with."""

BY_URGENCY = ("problem", "look", "ok", "not applicable")
"""What a check can say, in the order in which reports say it."""


@dataclass(frozen=True)
class About:
    """What a check asks, however it answers."""

    title: str
    tests: str
    """What is computed, by which test and at which level."""
    advice: str
    """What to do about it."""


ABOUT: dict[str, About] = {
    "OF1": About(
        "Place of the choice in the grid",
        "For each numeric parameter, the check compares the candidates that differ from the chosen "
        "one in this parameter only, if there are three values or more: is the chosen value the "
        "smallest or the largest? This is not a statistical test.",
        "Extend the grid beyond that value, unless the parameter can go no further. If the score "
        "hardly changes towards the edge, a wider grid will not change it much either.",
    ),
    "OF2": About(
        "Differences between folds",
        "Do the mean losses of the test sets differ more than those of random test sets of the "
        "same sizes? Permutation test of the variance between test sets with 999 permutations of "
        f"the losses, above 4000 samples the F test of one-way analysis of variance; level {LEVEL}."
        " Stratified folds are more alike than random folds, so the test is conservative for them. "
        "Models that change much from fold to fold make it flag slightly too often.",
        "Look at the test sets with the lowest scores. Often the rows are sorted, or come from "
        "groups: shuffle the folds, or keep groups together with groups=. The standard error is "
        "then a rough guide only.",
    ),
    "OF3": About(
        "Order of the rows",
        "With check=m: the mean of engine minus refit on m folds, t test with m − 1 "
        f"degrees of freedom, level {LEVEL} divided by the number of metrics; differences below a "
        "tenth of the standard error of the score are ignored. For k folds: do the targets of the "
        "folds differ more than by chance, as they do if the rows are sorted and folds are "
        f"blocks of rows? Permutation or F test as in OF2, level {LEVEL}.",
        "If the order of the rows has no meaning, shuffle: cv=KFold(10, shuffle=True, "
        "random_state=0). If it is time, use TimeSeriesSplit. For an engine that differs from "
        "refits, keep placement='random', order='random', or use engine='refit'.",
    ),
    "OF4": About(
        "Convergence",
        "The tolerance that the engine reports; for refits, whether a model has reached max_iter. "
        "This is not a statistical test.",
        "Scale the features, increase max_iter or the regularisation, or relax tol.",
    ),
    "OF5": About(
        "Classes in every fold",
        "The check counts the classes of every training set and, except for leave-one-out, of "
        "every test set. This is not a statistical test.",
        "Use stratified folds (an integer as cv does so for a classifier), fewer folds, or more "
        "samples of the rare class. A class that is missing in a training set cannot be predicted.",
    ),
    "OF6": About(
        "Comparison with a dummy",
        "The loss of every held-out sample, minus that of a prediction from the targets of the "
        "training set alone: its most frequent class, or its mean. (Where the most frequent class "
        "changes from fold to fold, that of all samples counts if it has the lower loss.) "
        "Difference of means with the standard error of Bayle et al. for independent samples held "
        "out once each, else with the corrected standard error over test sets; one-sided, level "
        f"{LEVEL} in each direction. It is about the loss, not about the metric.",
        "Look for an error in the data or the pipeline before tuning anything. With rare classes "
        "accuracy says little: see the ROC curve, and use a metric such as roc_auc or "
        "average_precision.",
    ),
    "OF7": About(
        "Metric defined on every test set",
        "The check counts the test sets without a score. R² and AUC are not defined on single "
        "samples, and AUC is not defined if a class is missing. A failed fit has no score either.",
        "Use the pooled score, fewer folds, or a metric that is a mean over samples.",
    ),
    "OF8": About(
        "Similarity of neighboring rows",
        "Are the losses of samples in neighboring rows more alike than by chance? Correlation of "
        "the ranks of the losses of neighboring rows, permutation test with 999 permutations, "
        f"normal approximation above 4000 samples; one-sided, level {LEVEL}; correlations below "
        "0.1 are ignored.",
        "If rows come from groups (patients, machines, days) or from a time series, random folds "
        "flatter: use groups= with GroupKFold, or TimeSeriesSplit. If rows are merely sorted, "
        "nothing is wrong.",
    ),
    "OF9": About(
        "Optimism of the choice",
        "The best of many scores is too good on the folds that it was chosen on. The check chooses "
        "the candidate with the best mean on a bootstrap sample of the test sets and scores it on "
        "the test sets left out, 200 times. The difference to the score of the chosen candidate "
        "estimates the optimism. It is compared with one standard error of that score; this is not "
        "a statistical test.",
        "Report the score of nested_cross_validate, or of rows that the search has not seen.",
    ),
    "OF10": About(
        "Scales of the features",
        "For estimators that compare or sum features as they are (support vector machines, nearest "
        "neighbors, kernels, stochastic gradient descent, neural networks) without a step before "
        "them: the largest standard deviation of a feature over the median one, on at most 1000 "
        f"rows. A ratio of {MAX_RATIO} or more is worth a look; this is not a statistical test.",
        "Put a scaler before the estimator: make_pipeline(StandardScaler(), estimator). It is "
        "fitted to each training set.",
    ),
    "OF11": About(
        "Early stopping by held-out rows",
        "For estimators whose fit gets an eval_set to stop the training (boosted trees): the check "
        "counts the rows of the eval_set that are rows of X. It compares arrays of numbers only; "
        "this is not a statistical test.",
        "Use engine_options={'eval_split': 0.1}, which takes the eval_set of each fold from its "
        "training set, or an eval_set of other rows.",
    ),
}
"""All checks by their number."""


def documentation() -> str | None:
    """The address of the documentation: `ADDRESS` or that in the metadata of the package."""
    if os.environ.get(ADDRESS):
        return os.environ[ADDRESS]
    try:
        urls: Any = metadata("onefold").get_all("Project-URL") or []
    except PackageNotFoundError:
        return None
    for entry in urls:
        label, _, address = str(entry).partition(",")
        if label.strip().lower() == "documentation":
            return address.strip()
    return None


@dataclass(frozen=True)
class Check:
    """The answer of one numbered check.

    Attributes
    ----------
    number : str
        ``"OF1"`` to ``"OF11"``; `ABOUT` has its question.
    verdict : {"ok", "look", "problem", "not applicable"}
    sentence : str
        The answer, as a sentence.
    values : dict
        The numbers behind it, such as ``p`` and ``statistic``.

    Examples
    --------
    >>> from onefold.report import Check
    >>> Check("OF4", "ok", "Every fold has a closed form.")
    OF4 ok: Every fold has a closed form.
    """

    number: str
    verdict: str
    sentence: str
    values: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.number not in ABOUT:
            raise ValueError(f"number must be one of {', '.join(ABOUT)}, got {self.number!r}")
        if self.verdict not in BY_URGENCY:
            raise ValueError(
                f"verdict must be one of {', '.join(BY_URGENCY)}, got {self.verdict!r}"
            )

    @property
    def title(self) -> str:
        """What is checked, in a few words."""
        return ABOUT[self.number].title

    @property
    def anchor(self) -> str:
        """The anchor of its section in the page ``checks`` of the documentation."""
        return self.number.lower()

    @property
    def url(self) -> str | None:
        """The address of its section, where the package names its documentation."""
        base = documentation()
        return None if base is None else f"{base.rstrip('/')}/checks.html#{self.anchor}"

    def __repr__(self) -> str:
        return f"{self.number} {self.verdict}: {self.sentence}"
