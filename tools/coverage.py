"""Add up the coverage of Rust and Python: one number from several files in the format of lcov.

python tools/coverage.py target/rust.lcov target/python.lcov
"""

import re
import sys
from pathlib import Path


def lines(text):
    r"""Return how many lines a file in the format of lcov has, and how many of them were run.

    Examples
    --------
    >>> lines("SF:a.rs\nDA:1,4\nDA:2,0\nend_of_record\nSF:b.rs\nDA:7,1\nend_of_record\n")
    (3, 2)
    """
    runs = [int(count) for count in re.findall(r"^DA:\d+,(\d+)", text, re.M)]
    return len(runs), sum(count > 0 for count in runs)


def main():
    totals = []
    for path in map(Path, sys.argv[1:]):
        n_lines, n_run = lines(path.read_text(encoding="utf-8"))
        totals.append((n_lines, n_run))
        print(f"{path.stem:8} {n_run:7} of {n_lines:7} lines  {n_run / n_lines:6.1%}")
    n_lines, n_run = map(sum, zip(*totals, strict=True))
    print(f"{'all':8} {n_run:7} of {n_lines:7} lines  {n_run / n_lines:6.1%}")


if __name__ == "__main__":
    main()
