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
        The tolerance that was asked for; None of an engine that does not iterate. It is that of a
        relative gradient (``newton``), of a relative duality gap (``path``) or of the violation of
        the optimality conditions (``seeded``).
    reached : float or None
        The largest value that a solved fold ended with.
    refitted_folds : int
        The number of folds that were fitted to their training rows alone: by the estimator's
        ``fit``, or by the engine where what the folds share has too few digits for them.
    reason : str
        Why they were, if an engine was to solve them.
    unsolved : str
        How folds ended short of a solution, if some are known to: after ``max_iter``, or above the
        tolerance.
    order_risk : str
        Why the order of the rows may make the estimate differ from that of refits, if it may.
    is_in_distribution : bool
        Whether outputs have the distribution of those of refits, but are other draws from it.
    detail : str
        Counts of single folds, such as iterations.
    measure : str
        What ``tol`` and ``reached`` measure, where ``solution`` says so.

    Examples
    --------
    >>> from onefold._engines.status import Status
    >>> status = Status("path", tol=1e-12, reached=3e-13, measure="relative duality gap")
    >>> status.converged, status.solution
    (True, 'solved to a relative duality gap of 3.0e-13 (tol=1e-12)')
    """

    solved_by: str
    tol: float | None = None
    reached: float | None = None
    refitted_folds: int = 0
    reason: str = ""
    unsolved: str = ""
    order_risk: str = ""
    measure: str = ""
    is_in_distribution: bool = False
    detail: str = ""

    @property
    def converged(self) -> bool | None:
        """Whether every fold was solved; None if that is not known or nothing iterates."""
        if self.unsolved:
            return False
        return None if self.tol is None else True

    @property
    def solution(self) -> str:
        """How closely the folds were solved, or an empty text if nothing measures it."""
        if not self.measure or self.reached is None:
            return ""
        return f"solved to a {self.measure} of {self.reached:.1e} (tol={self.tol:.0e})"

    @property
    def notes(self) -> list[str]:
        """What is doubtful about the folds, for the reader of a result."""
        lines = []
        if self.unsolved:
            lines.append(f"{self.solution or 'not converged'}: {self.unsolved}")
        if self.is_in_distribution:
            lines.append("equal to refits in distribution, which draw other samples")
        return [*lines, self.order_risk] if self.order_risk else lines

    @classmethod
    def joined(cls, parts: Sequence[Status]) -> Status:
        """The status of all folds from those of some each.

        Examples
        --------
        >>> from onefold._engines.status import Status
        >>> parts = [Status("newton", 1e-8, 2e-9), Status("refit", refitted_folds=1, reason="slow")]
        >>> joined = Status.joined(parts)
        >>> joined.solved_by, joined.reached, joined.refitted_folds, joined.reason
        ('newton', 2e-09, 1, 'slow')
        """
        engines = [part.solved_by for part in parts if part.solved_by != "refit"]

        def first(name: str) -> str:
            return next((getattr(part, name) for part in parts if getattr(part, name)), "")

        return cls(
            solved_by=engines[0] if engines else "refit",
            tol=max((part.tol for part in parts if part.tol is not None), default=None),
            reached=max((part.reached for part in parts if part.reached is not None), default=None),
            refitted_folds=sum(part.refitted_folds for part in parts),
            reason=first("reason"),
            unsolved=first("unsolved"),
            order_risk=first("order_risk"),
            measure=first("measure"),
            detail=first("detail"),
            is_in_distribution=any(part.is_in_distribution for part in parts),
        )
