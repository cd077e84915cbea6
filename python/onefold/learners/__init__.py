"""Native incremental learners: scikit-learn estimators that TreeCV walks without Python."""

from .linear import LeastSquaresSGD, LogisticSGD, PassiveAggressive, Pegasos, Perceptron

__all__ = ["LeastSquaresSGD", "LogisticSGD", "PassiveAggressive", "Pegasos", "Perceptron"]
