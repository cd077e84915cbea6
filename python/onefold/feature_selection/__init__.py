"""Feature selection by cross-validation: scikit-learn's classes with our engines inside."""

from ._selectors import RFECV, SequentialFeatureSelector

__all__ = ["RFECV", "SequentialFeatureSelector"]
