"""Standard errors, confidence intervals and comparisons, from scores and losses of the folds."""

from ._comparison import Comparison, compare
from ._interval import Interval
from ._standard_error import StandardError

__all__ = ["Comparison", "Interval", "StandardError", "compare"]
