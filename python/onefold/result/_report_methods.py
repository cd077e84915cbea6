"""What results have in common: a page, a text and checks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import os

    from ..report._check import Check

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
        from ..report._html import page

        result: Any = self
        text = page(result)
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
        from ..report._markdown import markdown

        result: Any = self
        return markdown(result)

    def script(self) -> str:
        """Return the call that made the result as a script: running it gives the same numbers.

        Data are variables of the names that they have in the call, and so is what no script can
        make anew, such as functions without a name; the first line lists them.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.svm import SVC
        >>> import onefold
        >>> X, y = load_iris(return_X_y=True)
        >>> print(onefold.cross_validate(SVC(C=10), X, y, cv=10).script())
        # Variables that are not defined here: X, y
        import onefold
        from sklearn.svm import SVC
        <BLANKLINE>
        result = onefold.cross_validate(SVC(C=10), X, y, cv=10)
        <BLANKLINE>
        """
        text: str = (getattr(self, "settings", None) or {}).get("script", "")
        if not text:
            raise ValueError(
                "the result has no script: only those of cross_validate and of searches have one"
            )
        return text

    def checks(self) -> list[Check]:
        """Return the numbered checks, OF1 to OF11; see `onefold.report`.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.naive_bayes import GaussianNB
        >>> import onefold
        >>> X, y = load_iris(return_X_y=True)
        >>> onefold.cross_validate(GaussianNB(), X, y, cv=10).checks()[4]
        OF5 ok: All classes are in every training set and every test set.
        """
        from ..report import checks

        result: Any = self
        return checks(result)

    def _checks_as_html(self) -> str:
        """The verdicts of the checks, for notebooks."""
        from ..report._short import short_form

        result: Any = self
        return short_form(result)
