"""Engines: the ways to compute held-out predictions, and the choice among them."""

from ._base import Candidate, Engine, FoldHook, Outcome, Plan
from ._choice import ENGINES, Choice, RefitWarning, choose, warn_of_refits
from ._refit import report_failures
from ._task import Data, Problem, Task

__all__ = [
    "ENGINES",
    "Candidate",
    "Choice",
    "Data",
    "Engine",
    "FoldHook",
    "Outcome",
    "Plan",
    "Problem",
    "RefitWarning",
    "Task",
    "choose",
    "report_failures",
    "warn_of_refits",
]
