"""What results have in common: a page, a text and checks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import os

    from ._check import Check

__all__ = ["HasReport"]


class HasReport:
    """Reports of a result."""

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str | None:
        """Write a report as one self-contained page: scores, figures, checks, cost and settings.

        It loads nothing from elsewhere, is readable on a phone and on paper, and follows the
        reader's choice of light or dark.

        Parameters
        ----------
        path : str or PathLike, optional
            The file to write; without it, the text is returned.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.naive_bayes import GaussianNB
        >>> import onefold
        >>> X, y = load_iris(return_X_y=True)
        >>> page = onefold.cross_validate(GaussianNB(), X, y, cv=10).to_html()
        >>> page.startswith("<!doctype html>")
        True
        """
        from ._html import page

        own: Any = self
        text = page(own)
        if path is None:
            return text
        Path(path).write_text(text, encoding="utf-8")
        return None

    def to_markdown(self) -> str:
        """Return the report as Markdown, for terminals and issues.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.naive_bayes import GaussianNB
        >>> import onefold
        >>> X, y = load_iris(return_X_y=True)
        >>> print(onefold.cross_validate(GaussianNB(), X, y, cv=10).to_markdown())
        # GaussianNB
        ...
        """
        from ._markdown import markdown

        own: Any = self
        return markdown(own)

    def checks(self) -> list[Check]:
        """Return the numbered checks, OF1 to OF9; see `onefold.report`.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.naive_bayes import GaussianNB
        >>> import onefold
        >>> X, y = load_iris(return_X_y=True)
        >>> onefold.cross_validate(GaussianNB(), X, y, cv=10).checks()[4]
        OF5 ok: All classes are in every training set and every test set.
        """
        from . import checks

        own: Any = self
        return checks(own)
