"""Engines: the ways to compute held-out predictions, and the choice among them."""

from .base import Candidate, FoldHook, Outcome
from .choose import Choice, RefitWarning, choose
from .engine import Engine
from .refit import report_failures
from .refit_notes import warn_of_refits
from .registry import ENGINES, engine_named
from .run import run
from .spec import Needs, Spec
from .task import Data, Problem, Task

__all__ = [
    "ENGINES",
    "Candidate",
    "Choice",
    "Data",
    "Engine",
    "FoldHook",
    "Needs",
    "Outcome",
    "Problem",
    "RefitWarning",
    "Spec",
    "Task",
    "choose",
    "engine_named",
    "report_failures",
    "run",
    "warn_of_refits",
]
