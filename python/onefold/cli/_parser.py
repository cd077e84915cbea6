"""The parser of all commands, which imports the module of the one that is called only."""

from __future__ import annotations

import argparse
import difflib
from typing import Any, NoReturn

__all__ = ["Parser"]


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, and whose help keeps the examples as they are written."""

    def __init__(self, **keywords: Any) -> None:
        keywords.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        keywords.setdefault("allow_abbrev", False)
        super().__init__(**keywords)

    def error(self, message: str) -> NoReturn:
        """Print one line and exit with 2."""
        self.exit(2, f"{self.prog}: error: {message} (see {self.prog} --help)\n")

    def refuse(self, command: str, unknown: list[str]) -> NoReturn:
        """Exit with an error about arguments that a command does not know."""
        parser: Parser = self.commands()[command]
        options = [option for option in parser._option_string_actions if len(option) > 2]
        near = difflib.get_close_matches(unknown[0].partition("=")[0], options, n=2)
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        parser.error(f"unknown arguments: {' '.join(unknown)}{hint}")

    def commands(self) -> dict[str, Any]:
        """The parsers of the commands."""
        parsers: dict[str, Any] = {}
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):
                parsers |= action.choices
        return parsers
