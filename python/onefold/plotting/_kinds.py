"""Which kinds of plot a result has, and how one of them is drawn."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ._style import has_layout, new_axes, shrink_labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Kind", "draw", "that_apply"]


Size = tuple[float, float]


@dataclass(frozen=True)
class Kind:
    """A kind of plot."""

    draw: Callable[..., Axes]
    """``draw(result, ax, **options)`` returns the axes; its keyword arguments are the options."""
    why_not: Callable[[Any], str | None]
    """Why it does not apply to a result, or None."""
    size: Size | Callable[[Any, Mapping[str, Any]], Size] = (6.4, 4.4)
    """Inches of a new figure, or a function of the result and the options that returns them."""

    @property
    def options(self) -> list[str]:
        """The names of the options."""
        parameters = inspect.signature(self.draw).parameters.values()
        return [
            parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY
        ]


def that_apply(result: Any, kinds: Mapping[str, Kind]) -> list[str]:
    """The names of the kinds that apply to a result."""
    return [name for name, kind in kinds.items() if kind.why_not(result) is None]


def draw(
    result: Any,
    kinds: Mapping[str, Kind],
    name: str | None,
    ax: Axes | None,
    options: Mapping[str, Any],
) -> Axes:
    """Draw a kind of plot, by default the first that applies.

    Raises
    ------
    ValueError
        If there is no such kind, or if it does not apply.
    TypeError
        For an option that the kind does not have.
    """
    if name is None:
        name = next(iter(that_apply(result, kinds)), None)
        if name is None:
            reasons = "; ".join(f"{key}: {kind.why_not(result)}" for key, kind in kinds.items())
            raise ValueError(f"no kind of plot applies to this result: {reasons}")
    if name not in kinds:
        raise ValueError(f"kind must be one of {_listed(kinds)}, got {name!r}")
    kind = kinds[name]
    reason = kind.why_not(result)
    if reason is not None:
        raise ValueError(
            f"kind={name!r} does not apply: {reason}; kinds that apply to this result: "
            f"{_listed(that_apply(result, kinds)) or 'none'}"
        )
    unknown = [option for option in options if option not in kind.options]
    if unknown:
        raise TypeError(
            f"kind={name!r} has no option {unknown[0]!r}; it has "
            f"{_listed(kind.options) or 'no options'}"
        )
    size = kind.size(result, options) if callable(kind.size) else kind.size
    drawn = kind.draw(result, new_axes(ax, size), **options)
    if not has_layout(drawn):
        shrink_labels(drawn)
    return drawn


def _listed(names: Any) -> str:
    return ", ".join(repr(name) for name in names)
