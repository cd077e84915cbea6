"""From held-out responses to scores.

Engines return predictions, never scores, but a scorer takes an estimator. `HeldOut` is one: its
``predict``, ``decision_function`` etc. return the responses for one test set. So every scorer of
scikit-learn works on the responses of every engine, for one fold or for all of them pooled.

Without ``scoring`` a score is what the estimator's own ``score`` returns for a test set. Of
classifiers and regressions that is a metric; of densities and clusterings it is a mean or a sum
over samples, as scikit-learn has it: the mean log density of mixtures, PCA and native densities,
the sum of log densities of `KernelDensity`, and minus the sum of squared distances of k-means, ours
and scikit-learn's. Pooled scores follow the same rule.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from inspect import signature
from numbers import Real
from traceback import format_exc
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin, is_classifier, is_clusterer, is_regressor
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA, FactorAnalysis
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.linear_model import PoissonRegressor
from sklearn.metrics import (
    accuracy_score,
    brier_score_loss,
    check_scoring,
    get_scorer,
    get_scorer_names,
    log_loss,
    r2_score,
)
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import KernelDensity, KNeighborsClassifier
from sklearn.pipeline import Pipeline
from sklearn.utils import check_array

from .._inputs.caller_data import copied
from .._sklearn_compat import (
    BaseSearchCV,
    _BaseScorer,
    _check_multimetric_scoring,
    _check_sample_weight,
    _MultimetricScorer,
    _PassthroughScorer,
    glm_loss,
    score_predictions,
    scorer_keywords,
    scorer_metric,
    scorer_responses,
    scorer_sign,
    scorers_by_name,
    with_keywords,
)
from .._utils.estimator_class import is_accelerated
from .._utils.responses import RESPONSES
from .._utils.warnings import warn
from ..learners._base import NativeClusterer, NativeDensity
from .losses import over_outputs, shaped_like
from .metrics import METRICS

__all__ = [
    "RESPONSES",
    "UNNAMED",
    "DevianceExplained",
    "HeldOut",
    "Scorer",
    "is_mean",
    "is_sum",
    "largest_score",
    "loss_of",
    "metric_of",
    "per_sample",
    "reads_answers",
    "resolve_scoring",
    "responses_read",
    "score_held_out",
    "sign_of",
    "usual_responses",
]

Scorer = Callable[..., Any]
Responses = Mapping[str, NDArray[Any]]
Floats = NDArray[np.float64]

UNNAMED = "score"
"""The name of the one metric that a caller has not named."""


class HeldOut:
    """A fitted estimator as a scorer sees it: its responses for one test set, each computed once.

    Parameters
    ----------
    estimator : estimator
        Fitted: computes what is not among ``responses``. Not fitted: only defines the kind of
        estimator.
    responses : dict of arrays
        Known responses, by the name of the method that returns them.
    classes : array, optional
        Of a classifier that is not fitted.
    rows : array-like, optional
        The rows of the responses; a request for other rows is then an error.
    known : dict of arrays, optional
        Responses of a fitted estimator, for the test set.
    """

    def __init__(
        self,
        estimator: Any,
        responses: Responses | None = None,
        classes: Any = None,
        rows: Any = None,
        known: Responses | None = None,
    ) -> None:
        self._rows = rows
        self._estimator = estimator
        self._is_fitted = responses is None
        self._responses = dict(responses or known or {})
        if classes is not None:
            self.classes_ = classes

    def __sklearn_tags__(self) -> Any:
        return self._estimator.__sklearn_tags__()

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __getattr__(self, name: str) -> Any:
        if name in RESPONSES and (name in self._responses or self._is_fitted):
            return self._method(name)
        if name.startswith("__") or not self._is_fitted:
            raise AttributeError(f"{name} is not among the held-out responses")
        return getattr(self._estimator, name)

    def _method(self, name: str) -> Callable[[Any], Any]:
        compute = None if name in self._responses else getattr(self._estimator, name)

        def response(X: Any) -> Any:
            if self._rows is not None and X is not self._rows:
                raise ValueError(
                    f"{name} is known for the held-out rows as they are, and no others"
                )
            if name not in self._responses and compute is not None:
                self._responses[name] = compute(X)
            return copied(self._responses[name])  # a metric may write to it

        response.__name__ = name  # scikit-learn's scorers read it
        return response

    @property
    def subject(self) -> Any:
        """The fitted estimator, or this stand-in where there is none."""
        return self._estimator if self._is_fitted else self

    def answer(self, name: str, X: Any) -> NDArray[Any] | None:
        """Return what the estimator's method ``name`` returns, or None where it has none."""
        return getattr(self, name)(X) if hasattr(self, name) else None

    def score(self, X: Any, y: Any = None, **weights: Any) -> Any:
        """Return the estimator's own score, from the known responses where they suffice."""
        metric = _own_metric(self._estimator)
        if metric is not None:
            return metric(y, self.predict(X), **weights)
        if self._is_fitted:
            return self._estimator.score(X, y, **weights)
        scores = _own_sample_scores(self._estimator, self._responses)
        if scores is not None:
            w = weights.get("sample_weight")
            if _own_score(self._estimator) in _SUMS:
                return float(np.sum(scores if w is None else scores * w))
            return float(np.average(scores, weights=w))
        if isinstance(self._estimator, BaseSearchCV):
            # A search scores as the candidate does that it has chosen.
            candidate, classes = self._estimator.estimator, getattr(self, "classes_", None)
            held = HeldOut(candidate, self._responses, classes)
            return _scorer_of(self._estimator)(held, X, y, **weights)
        raise AttributeError(f"{type(self._estimator).__name__}.score needs the fitted estimator")


_OWN_METRICS: dict[Any, Callable[..., Any]] = {
    ClassifierMixin.score: accuracy_score,
    DummyClassifier.score: accuracy_score,
    KNeighborsClassifier.score: accuracy_score,
    RegressorMixin.score: r2_score,
    DummyRegressor.score: r2_score,
}
"""Methods ``score`` that are a metric of what ``predict`` returns, and nothing else."""


_MEANS = {
    NativeDensity.score: "score_samples",
    GaussianMixture.score: "score_samples",
    PCA.score: "score_samples",
    FactorAnalysis.score: "score_samples",
}
"""Methods ``score`` that are a mean over samples, and the response that it is computed from."""

_SUMS = {
    KernelDensity.score: "score_samples",
    NativeClusterer.score: "transform",
    KMeans.score: "transform",
}
"""Methods ``score`` that are a sum over samples, and the response that it is computed from."""


def _own_score(estimator: Any) -> Any:
    """The method ``score`` of an estimator, through a pipeline to that of its last step."""
    while isinstance(estimator, Pipeline):
        estimator = estimator.steps[-1][1]
    for parent in type(estimator).__mro__:
        if "score" in vars(parent) and not is_accelerated(parent):
            return vars(parent)["score"]
    return None


def _own_metric(estimator: Any) -> Callable[..., Any] | None:
    """The metric behind ``estimator.score``, if it is one."""
    if _own_score(estimator) is PoissonRegressor.score:
        return DevianceExplained(estimator)
    return _OWN_METRICS.get(_own_score(estimator))


class DevianceExplained:
    """The score of generalised linear models, D², from predictions.

    D² = 1 − D(y, ŷ)/D(y, ȳ): the deviance of the predictions beside that of the mean. The loss of
    the estimator is half a deviance without the terms that depend on y alone; these are added.
    """

    def __init__(self, estimator: Any) -> None:
        while isinstance(estimator, Pipeline):
            estimator = estimator.steps[-1][1]
        self._loss = glm_loss(estimator)

    def __call__(self, y: Any, predicted: Any, sample_weight: Any = None) -> float:
        loss = self._loss
        targets = check_array(y, dtype=np.float64, order="C", ensure_2d=False)
        weights = sample_weight
        if weights is not None:
            weights = _check_sample_weight(weights, targets, dtype=np.float64)
        if not loss.in_y_true_range(targets):
            raise ValueError(f"y has values out of the range of {type(loss).__name__}")
        with np.errstate(divide="ignore"):
            linear = loss.link.link(np.array(predicted, dtype=np.float64, order="C"))
        mean = loss.link.link(np.average(targets, weights=weights))
        terms_of_y = loss.constant_to_optimal_zero(y_true=targets, sample_weight=None)
        constant = np.average(terms_of_y, weights=weights)
        deviance, of_mean = (
            loss(y_true=targets, raw_prediction=raw, sample_weight=weights) + constant
            for raw in (linear, np.full(len(targets), mean))
        )
        return float(1 - deviance / of_mean)


def _scorer_of(search: BaseSearchCV) -> Scorer:
    """The scorer behind ``search.score``: with several metrics, the one named by `refit`."""
    scoring = search.scoring
    if isinstance(scoring, Mapping):
        scoring = scoring[search.refit]
    elif isinstance(scoring, (list, tuple, set)):
        scoring = search.refit
    scorer: Scorer = check_scoring(search.estimator, scoring=scoring)
    return scorer


def _own_sample_scores(estimator: Any, responses: Responses) -> Floats | None:
    """The scores of each sample whose mean or sum is ``estimator.score``, if it is such."""
    name = (_MEANS | _SUMS).get(_own_score(estimator))
    if name is None or name not in responses:
        return None
    values = np.asarray(responses[name], dtype=np.float64)
    return values if name == "score_samples" else -np.square(values.min(axis=1))


def resolve_scoring(estimator: Any, scoring: Any) -> dict[str, Scorer]:
    """Read ``scoring`` as scikit-learn does: scorers by name, ``{"score": …}`` for a single one.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from onefold._scoring.scorers import resolve_scoring
    >>> list(resolve_scoring(Ridge(), ["r2", "neg_mean_squared_error"]))
    ['r2', 'neg_mean_squared_error']
    """
    if isinstance(scoring, _MultimetricScorer):  # what check_scoring makes of several metrics
        return dict(scorers_by_name(scoring))
    if isinstance(scoring, (list, tuple, set, frozenset, Mapping)):
        named = dict(scoring) if isinstance(scoring, Mapping) else list(scoring)
        return dict(_check_multimetric_scoring(estimator, named))
    return {UNNAMED: check_scoring(estimator, scoring=scoring)}


def score_held_out(
    scorers: Mapping[str, Scorer],
    held: HeldOut,
    X: Any,
    y: Any,
    *,
    params: Mapping[str, Mapping[str, Any]],
    error_score: float | str = "raise",
    beside: Mapping[str, Scorer] | None = None,
) -> dict[str, float]:
    """Scores of one test set, by metric; a scorer may itself return several by name.

    ``beside`` has all scorers of the call, where ``scorers`` are some of them.

    ``params`` has the arguments of each scorer besides rows and targets. What an unnamed scorer
    would have named is not known where it fails, and so is left out.
    """
    arguments = (X,) if y is None else (X, y)
    scores: dict[str, float] = {}
    of_predictions = _scorers_of_predictions(beside or scorers)
    for name, scorer in scorers.items():
        subject = held if reads_answers(scorer) else held.subject
        call: Any = _with_labels(scorer, held, y)
        if name in of_predictions[1:]:
            call = partial(score_predictions, call)
        try:
            score = call(subject, *arguments, **params.get(name, {}))
        except Exception as error:
            lacking = _lacking_response(error, name, scorer, held)
            if error_score == "raise":
                if lacking is not None:
                    raise lacking from None
                raise
            score = {} if name == UNNAMED else error_score
            warn(
                "Scoring failed. The score on this train-test partition for these parameters will "
                f"be set to {error_score}. Details: \n{lacking or format_exc()}"
            )
        for key, value in (score if isinstance(score, dict) else {name: score}).items():
            number = value.item() if getattr(value, "ndim", None) == 0 else value
            if not isinstance(number, Real):
                raise ValueError(f"scoring must return a number, got {value!r} (scorer={key})")
            scores[key] = float(number)
    return scores


def _scorers_of_predictions(scorers: Mapping[str, Scorer]) -> list[str]:
    """The names of scorers that read predictions; scikit-learn's first one predicts for all."""
    if len(scorers) == 1:
        return []
    return [name for name, scorer in scorers.items() if scorer_responses(scorer) == ("predict",)]


def _lacking_response(
    error: Exception, name: str, scorer: Any, held: HeldOut
) -> AttributeError | None:
    """The error of a scorer that needs a method which the estimator lacks, in these words."""
    if not isinstance(error, AttributeError) or HeldOut.__name__ not in str(error):
        return None
    methods = " or ".join(scorer_responses(scorer)) or "another method"
    text = repr(scorer)
    known = (known for known in get_scorer_names() if repr(get_scorer(known)) == text)
    label = next(known, name)
    kind = type(held._estimator).__name__
    return AttributeError(f"scoring={label!r} needs {methods}, which {kind} does not have")


def _with_labels(scorer: Any, held: HeldOut, y: Any) -> Scorer:
    """A scorer of probabilities that knows all classes, for a test set that lacks some of them."""
    metric: Any = scorer_metric(scorer)
    if metric not in (log_loss, brier_score_loss):
        return scorer  # type: ignore[no-any-return]
    classes: Any = getattr(held, "classes_", None)
    takes_labels = "labels" in signature(metric).parameters and "labels" not in scorer_keywords(
        scorer
    )
    if takes_labels and np.ndim(classes) == 1 and np.ndim(y) == 1:
        present = np.unique(y)
        if len(present) < len(classes) and np.isin(present, classes).all():
            scorer = with_keywords(scorer, labels=classes)
    return scorer  # type: ignore[no-any-return]


def loss_of(scorers: Mapping[str, Scorer], estimator: Any) -> str | None:
    """The loss whose mean is the one metric that was asked for, if it is such.

    Examples
    --------
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from onefold._scoring.scorers import loss_of, resolve_scoring
    >>> loss_of(resolve_scoring(GaussianNB(), "neg_log_loss"), GaussianNB())
    'log'
    """
    if len(scorers) != 1:
        return None
    [scorer] = scorers.values()
    metric = metric_of(scorer, estimator)
    is_plain = not scorer_keywords(scorer)
    known = METRICS.get(metric) if is_plain and reads_answers(scorer) else None
    return None if known is None else known.loss


def reads_answers(scorer: Scorer) -> bool:
    """Whether a scorer is one of scikit-learn: any other callable may use the estimator itself."""
    return isinstance(scorer, (_BaseScorer, _PassthroughScorer))


def responses_read(scorers: Mapping[str, Scorer], estimator: Any) -> tuple[str, ...]:
    """The responses of an estimator that scorers of scikit-learn read.

    Examples
    --------
    >>> from sklearn.svm import SVC
    >>> from onefold._scoring.scorers import resolve_scoring, responses_read
    >>> responses_read(resolve_scoring(SVC(), ["roc_auc", "accuracy"]), SVC())
    ('decision_function', 'predict')
    """
    responses = []
    for scorer in scorers.values():
        methods = scorer_responses(scorer)
        responses += [next((name for name in methods if hasattr(estimator, name)), None)]
    return tuple(dict.fromkeys(name for name in responses if name is not None))


def metric_of(scorer: Scorer, estimator: Any) -> Callable[..., Any] | None:
    """The metric that a scorer of scikit-learn computes, where it is a known function."""
    if isinstance(scorer, _PassthroughScorer):
        return _own_metric(estimator)
    return scorer_metric(scorer)


def is_mean(scorer: Scorer, estimator: Any) -> bool:
    """Whether `per_sample` computes the scorer, given predictions."""
    known = METRICS.get(metric_of(scorer, estimator))
    return known is not None and known.of_sample is not None and not scorer_keywords(scorer)


def is_sum(scorer: Scorer, estimator: Any) -> bool:
    """Whether a score is the sum of what `per_sample` returns, and not the mean."""
    return isinstance(scorer, _PassthroughScorer) and _own_score(estimator) in _SUMS


def per_sample(scorer: Scorer, estimator: Any, y: Any, responses: Responses) -> NDArray[Any] | None:
    """Per-sample scores whose mean, or sum, over a fold is its score, where the metric has them.

    With these, the scores of half a million folds of leave-one-out are one pass of numpy.
    """
    metric = metric_of(scorer, estimator)
    if metric is None and isinstance(scorer, _PassthroughScorer):
        return _own_sample_scores(estimator, responses)
    if metric is None or y is None or "predict" not in responses or not is_mean(scorer, estimator):
        return None
    prediction = responses["predict"]
    targets, of_sample = shaped_like(prediction, y), METRICS[metric].of_sample
    if of_sample is None or (metric is accuracy_score and not _are_labels(prediction, targets)):
        return None
    values = over_outputs(of_sample(targets, prediction))
    return values if sign_of(scorer) == 1 else -1.0 * values


def sign_of(scorer: Scorer) -> int:
    """−1 of a scorer that turns a metric round, so that the larger is the better."""
    return scorer_sign(scorer)


def _are_labels(prediction: Any, y: Any) -> bool:
    """Whether each sample has one label: scikit-learn judges sets of labels, and numbers."""
    are_numbers = prediction.dtype.kind == "f" and (prediction != np.rint(prediction)).any()
    return y.ndim == 1 and not are_numbers


def largest_score(scorer: Scorer, estimator: Any) -> float | None:
    """The largest score that a test set can have, or None where no bound is known.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.metrics import get_scorer
    >>> from onefold._scoring.scorers import largest_score
    >>> largest_score(get_scorer("r2"), Ridge())
    1.0
    >>> largest_score(get_scorer("neg_mean_squared_error"), Ridge())
    0.0
    """
    metric: Any = metric_of(scorer, estimator)
    if isinstance(metric, DevianceExplained):
        return 1.0
    known = METRICS.get(metric)
    is_count = scorer_keywords(scorer).get("normalize", True) is False
    if known is None or sign_of(scorer) != (-1 if known.is_loss else 1):
        return None
    return None if is_count and not known.is_loss else known.best


def usual_responses(estimator: Any) -> tuple[str, ...]:
    """The responses that a result has, by the kind of estimator."""
    if is_classifier(estimator):
        has_decision = hasattr(estimator, "decision_function")
        return ("predict", "decision_function" if has_decision else "predict_proba")
    if is_regressor(estimator):
        return ("predict",)
    if is_clusterer(estimator):
        return ("predict", "transform")
    return ("predict", "score_samples")
