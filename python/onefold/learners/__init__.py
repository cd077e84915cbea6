"""Native incremental learners: scikit-learn estimators whose models are trained by the core."""

from ._bayes import BernoulliNB, ComplementNB, GaussianNB, MultinomialNB
from ._cluster import OnlineKMeans
from ._density import GaussianDensity, HistogramDensity
from ._least_squares import RecursiveLeastSquares, RidgeStatistics
from ._linear import LeastSquaresSGD, LogisticSGD, PassiveAggressive, Pegasos, Perceptron

__all__ = [
    "BernoulliNB",
    "ComplementNB",
    "GaussianDensity",
    "GaussianNB",
    "HistogramDensity",
    "LeastSquaresSGD",
    "LogisticSGD",
    "MultinomialNB",
    "OnlineKMeans",
    "PassiveAggressive",
    "Pegasos",
    "Perceptron",
    "RecursiveLeastSquares",
    "RidgeStatistics",
]
