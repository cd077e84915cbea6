"""The command line: ``python -m onefold``, the same as ``onefold``."""

from __future__ import annotations

import sys

from .cli import main

if __name__ == "__main__":
    sys.exit(main())
