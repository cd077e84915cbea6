"""Counters of work, and how those of several parts add up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

__all__ = ["total_cost"]


def total_cost(costs: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Counts add up over the parts of the work, the most models alive at one time do not.

    Examples
    --------
    >>> from onefold._engines.costs import total_cost
    >>> total_cost([{"fits": 1, "peak_models": 3}, {"fits": 2, "peak_models": 2}])
    {'fits': 3, 'peak_models': 3}
    """
    total: Counter[str] = Counter()
    for cost in costs:
        peak = max(total["peak_models"], cost.get("peak_models", 0))
        total.update(cost)
        total["peak_models"] = peak
    return {name: count for name, count in total.items() if count or name != "peak_models"}
