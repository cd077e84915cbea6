"""What solved the folds of a cross-validation, how closely, and which were refitted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Status"]


@dataclass(frozen=True)
class Status:
    """What solved the folds, and how closely.

    Attributes
    ----------
    solved_by : str
        The engine that solved the folds; ``"refit"`` only if all of them were refitted.
    tol : float or None
        The tolerance that was asked for; None of an engine that does not iterate. What it measures
        is that of the engine: a relative gradient (``newton``), a relative duality gap (``path``),
        the violation of the optimality conditions (``seeded``).
    reached : float or None
        The largest value that a solved fold ended with.
    refitted_folds : int
        The number of folds that were fitted to their training rows alone: by the estimator's
        ``fit``, or by the engine where what the folds share has too few digits for them.
    reason : str
        Why they were, if an engine was to solve them.

    Examples
    --------
    >>> from onefold._status import Status
    >>> Status("newton", tol=1e-8, reached=3e-9)
    Status(solved_by='newton', tol=1e-08, reached=3e-09, refitted_folds=0, reason='')
    """

    solved_by: str
    tol: float | None = None
    reached: float | None = None
    refitted_folds: int = 0
    reason: str = ""

    @classmethod
    def joined(cls, parts: Sequence[Status]) -> Status:
        """The status of all folds from those of some each.

        Examples
        --------
        >>> from onefold._status import Status
        >>> parts = [Status("newton", 1e-8, 2e-9), Status("refit", refitted_folds=1, reason="slow")]
        >>> Status.joined(parts)
        Status(solved_by='newton', tol=1e-08, reached=2e-09, refitted_folds=1, reason='slow')
        """
        engines = [part.solved_by for part in parts if part.solved_by != "refit"]
        return cls(
            solved_by=engines[0] if engines else "refit",
            tol=max((part.tol for part in parts if part.tol is not None), default=None),
            reached=max((part.reached for part in parts if part.reached is not None), default=None),
            refitted_folds=sum(part.refitted_folds for part in parts),
            reason=next((part.reason for part in parts if part.reason), ""),
        )
