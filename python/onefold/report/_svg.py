"""Small charts as SVG text: scales, axes, marks.

Colours are classes and ``currentColor``, so that the page chooses them for light, dark and print.
Coordinates are numbers and all text is escaped, so nothing of a user's names becomes markup.
"""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

__all__ = ["Chart", "Scale", "number_text", "ticks"]


def ticks(low: float, high: float, n: int = 5) -> list[float]:
    """About n round numbers from low to high.

    Examples
    --------
    >>> from onefold.report._svg import ticks
    >>> ticks(0.12, 0.58), ticks(0, 1, 2)
    ([0.2, 0.3, 0.4, 0.5], [0.0, 0.5, 1.0])
    """
    if not (math.isfinite(low) and math.isfinite(high)) or high <= low:
        return [low] if math.isfinite(low) else []
    raw = (high - low) / n
    power = 10.0 ** math.floor(math.log10(raw))
    step = next((m * power for m in (1, 2, 5, 10) if m * power >= raw * 0.999), 10 * power)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    digits = max(0, 2 - math.floor(math.log10(step)))
    return [round(i * step, digits) + 0.0 for i in range(first, last + 1)]


def number_text(value: float) -> str:
    """A number on an axis.

    Examples
    --------
    >>> from onefold.report._svg import number_text
    >>> number_text(0.30000000000000004), number_text(1e-05), number_text(25000.0)
    ('0.3', '1e-5', '25000')
    """
    text = f"{value:.4g}"
    if "e" not in text:
        return text.replace("-", "−")
    if 1e4 <= abs(value) < 1e6:
        return f"{value:.0f}".replace("-", "−")
    mantissa, _, exponent = text.partition("e")
    return f"{mantissa}e{int(exponent)}"


@dataclass(frozen=True)
class Scale:
    """Numbers from low to high as coordinates from start to stop."""

    low: float
    high: float
    start: float
    stop: float
    is_log: bool = False

    def __call__(self, value: float) -> float:
        """The coordinate of a number."""
        low, high, own = self.low, self.high, value
        if self.is_log:
            low, high, own = math.log10(low), math.log10(high), math.log10(value)
        share = 0.5 if high == low else (own - low) / (high - low)
        return self.start + share * (self.stop - self.start)

    def ticks(self, n: int = 5) -> list[float]:
        """Round numbers on it: powers of ten on a logarithmic scale."""
        if not self.is_log:
            return ticks(self.low, self.high, n)
        first, last = math.ceil(math.log10(self.low)), math.floor(math.log10(self.high))
        step = max(1, math.ceil((last - first) / n))
        return [10.0**i for i in range(first, last + 1, step)]


@dataclass
class Chart:
    """One chart: a plot area with axes, to which marks are added.

    Examples
    --------
    >>> from onefold.report._svg import Chart
    >>> chart = Chart("Scores & means", "Two points", x=(0, 1), y=(0, 2))
    >>> chart.points([(0.2, 1.0), (0.4, 1.5)])
    >>> text = chart.text()
    >>> text.count("<circle"), "Scores &amp; means" in text
    (2, True)
    """

    title: str
    description: str
    x: tuple[float, float]
    y: tuple[float, float]
    width: int = 480
    height: int = 280
    left: int = 66
    bottom: int = 46
    top: int = 12
    right: int = 14
    log_x: bool = False
    marks: list[str] = field(default_factory=list)

    @property
    def x_scale(self) -> Scale:
        """From values to the horizontal coordinate."""
        return Scale(*self.x, self.left, self.width - self.right, self.log_x)

    @property
    def y_scale(self) -> Scale:
        """From values to the vertical coordinate, which grows downwards."""
        return Scale(*self.y, self.height - self.bottom, self.top)

    def points(
        self, points: Sequence[tuple[float, float]], kind: str = "point", radius: float = 4
    ) -> None:
        """Add one circle per point."""
        x, y = self.x_scale, self.y_scale
        self.marks += [
            f'<circle class="{kind}" cx="{x(a):.1f}" cy="{y(b):.1f}" r="{radius:g}"/>'
            for a, b in points
            if math.isfinite(a) and math.isfinite(b)
        ]

    def line(self, points: Sequence[tuple[float, float]], kind: str = "line") -> None:
        """Add a line through points."""
        x, y = self.x_scale, self.y_scale
        path = " ".join(f"{x(a):.1f},{y(b):.1f}" for a, b in points)
        self.marks.append(f'<polyline class="{kind}" points="{path}"/>')

    def box(
        self,
        x: tuple[float, float],
        y: tuple[float, float],
        kind: str = "band",
        opacity: float | None = None,
    ) -> None:
        """Add a rectangle."""
        left, right = sorted(map(self.x_scale, x))
        upper, lower = sorted(map(self.y_scale, y))
        extra = "" if opacity is None else f' fill-opacity="{opacity:.2f}"'
        self.marks.append(
            f'<rect class="{kind}"{extra} x="{left:.1f}" y="{upper:.1f}" '
            f'width="{max(right - left, 0.5):.1f}" height="{max(lower - upper, 0.5):.1f}"/>'
        )

    def label(
        self, text: str, x: float, y: float, *, anchor: str = "middle", kind: str = "tick"
    ) -> None:
        """Add text at a coordinate of the picture."""
        self.marks.append(
            f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">'
            f"{html.escape(text)}</text>"
        )

    def x_axis(self, name: str, at: Sequence[float] | None = None, n: int = 5) -> None:
        """Add the horizontal axis with its name."""
        base = self.height - self.bottom
        for value in self.x_scale.ticks(n) if at is None else at:
            place = self.x_scale(value)
            self.marks.append(
                f'<line class="axis" x1="{place:.1f}" y1="{base}" x2="{place:.1f}" '
                f'y2="{base + 4}"/>'
            )
            self.label(number_text(value), place, base + 18)
        self.label(name, (self.left + self.width - self.right) / 2, self.height - 8, kind="name")

    def y_axis(self, name: str, n: int = 5) -> None:
        """Add the vertical axis with its name and grid lines."""
        for value in self.y_scale.ticks(n):
            place = self.y_scale(value)
            self.marks.insert(
                0,
                f'<line class="grid" x1="{self.left}" y1="{place:.1f}" '
                f'x2="{self.width - self.right}" y2="{place:.1f}"/>',
            )
            self.label(number_text(value), self.left - 6, place + 4.5, anchor="end")
        middle = (self.top + self.height - self.bottom) / 2
        self.marks.append(
            f'<text class="name" transform="translate(15 {middle:.1f}) rotate(-90)" '
            f'text-anchor="middle">{html.escape(name)}</text>'
        )

    def text(self) -> str:
        """The chart as SVG, with a title and a description for those who cannot see it."""
        base = self.height - self.bottom
        frame = (
            f'<line class="axis" x1="{self.left}" y1="{base}" x2="{self.width - self.right}" '
            f'y2="{base}"/>'
        )
        label = html.escape(f"{self.title}. {self.description}")
        return (
            f'<svg viewBox="0 0 {self.width} {self.height}" role="img" aria-label="{label}">'
            f"<title>{html.escape(self.title)}</title><desc>{html.escape(self.description)}</desc>"
            f"{''.join(self.marks)}{frame}</svg>"
        )
