"""Numbers with their errors."""

from __future__ import annotations

import math

__all__ = ["with_error"]


def with_error(mean: float, error: float) -> str:
    """A number and its error, both to the second digit of the error.

    Examples
    --------
    >>> from onefold.report._number import with_error
    >>> with_error(0.463312, 0.0442), with_error(-3329.1, 212.0), with_error(0.5, float("nan"))
    ('0.463 ± 0.044', '−3329 ± 212', '0.5')
    """
    if math.isnan(mean):
        return "undefined"
    if not math.isfinite(error) or error <= 0:
        text = f"{mean:.4g}" + (" ± 0" if error == 0 else "")
        return text.replace("-", "−")
    digits = min(12, max(0, 1 - math.floor(math.log10(error))))
    if digits == 0 and abs(mean) >= 1e7:
        return f"{mean:.6g} ± {error:.2g}".replace("-", "−")
    return f"{mean:.{digits}f} ± {error:.{digits}f}".replace("-", "−")
