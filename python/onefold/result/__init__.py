"""The result of a cross-validation, from the outcome of an engine."""

from ._cv_result import CVResult

__all__ = ["CVResult"]
