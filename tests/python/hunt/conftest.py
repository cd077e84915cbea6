"""The hunt says at its end how many cases it drew."""

import sys


def pytest_terminal_summary(terminalreporter):
    """One line for each family of estimators."""
    hunt = sys.modules.get("test_differential")
    if hunt is None or not hunt.SECONDS:
        return
    terminalreporter.section("cases drawn")
    for family, n_cases in hunt.DRAWN.items():
        terminalreporter.write_line(f"{n_cases:7} {family}")
    terminalreporter.write_line(f"{hunt.DRAWN.total():7} in all")
