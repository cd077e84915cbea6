"""Native incremental learners: scikit-learn estimators that TreeCV walks without Python."""

from .bayes import BernoulliNB, ComplementNB, GaussianNB, MultinomialNB
from .cluster import OnlineKMeans
from .density import GaussianDensity, HistogramDensity
from .least_squares import LeastSquaresStatistics, RecursiveLeastSquares
from .linear import LeastSquaresSGD, LogisticSGD, PassiveAggressive, Pegasos, Perceptron

__all__ = [
    "BernoulliNB",
    "ComplementNB",
    "GaussianDensity",
    "GaussianNB",
    "HistogramDensity",
    "LeastSquaresSGD",
    "LeastSquaresStatistics",
    "LogisticSGD",
    "MultinomialNB",
    "OnlineKMeans",
    "PassiveAggressive",
    "Pegasos",
    "Perceptron",
    "RecursiveLeastSquares",
]
