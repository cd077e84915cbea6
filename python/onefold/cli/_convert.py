"""``onefold convert``: LIBSVM text, directories of arrays, CSV and npz into one another."""

from __future__ import annotations

import argparse
import io
import os
from pathlib import Path
from typing import Any

import numpy as np

from ..libsvm import convert_libsvm, dump_libsvm
from ._console import Console, UsageError, is_sparse
from ._csv import save_csv
from ._files import FORMATS, Rows, format_of, load_rows, save_npz
from ._options import add_file_options, add_output_options

__all__ = ["add_parser"]

_EXAMPLES = """\
examples:
  onefold convert big.libsvm.xz big.d          memory-mappable arrays, in bounded memory
  onefold convert iris.csv iris.libsvm.gz      text labels become numbers: see the output
  onefold convert heart_scale heart.npz
  onefold convert heart.d heart.csv

The name of OUTPUT decides: .csv, .tsv, .npz, .libsvm, .svm, .svmlight or .txt (also .gz,
.bz2, .xz, .zst), and anything else is a directory. --to overrides it.
"""

_TEXT = (".libsvm", ".svm", ".svmlight", ".txt")


def add_parser(commands: Any, summary: str) -> None:
    """Add the command to a parser."""
    parser = commands.add_parser(
        "convert",
        help=summary,
        description="Convert between LIBSVM text, directories of arrays, CSV and npz.",
        epilog=_EXAMPLES,
    )
    parser.add_argument("file", metavar="INPUT", help="file or directory to read")
    parser.add_argument("output", metavar="OUTPUT", help="file or directory to write")
    parser.add_argument("--to", choices=FORMATS, help="format of OUTPUT (default: by its name)")
    parser.add_argument(
        "--dtype",
        choices=("float32", "float64"),
        default="float64",
        help="type of the values in a directory (default: float64)",
    )
    parser.add_argument("--force", action="store_true", help="replace a file that exists")
    add_file_options(parser)
    add_output_options(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace, console: Console) -> None:
    """Run the command."""
    target = arguments.to or _target_format(arguments.output)
    output = Path(arguments.output)
    if output.is_file() and not arguments.force:
        raise UsageError(f"{output} exists; --force replaces it")
    source = arguments.format or ("libsvm" if arguments.file == "-" else format_of(arguments.file))
    labels: dict[str, int] = {}
    if source == "libsvm" and target == "directory":
        if arguments.file == "-":
            raise UsageError("- cannot be converted to a directory: give a file")
        if not Path(arguments.file).exists():
            raise FileNotFoundError(f"{arguments.file}: no such file")
        convert_libsvm(arguments.file, output, dtype=arguments.dtype, progress=console.progress)
    else:
        rows = load_rows(
            arguments.file,
            format=arguments.format,
            target=arguments.target,
            dense=arguments.dense,
            progress=console.progress,
        )
        labels = _write(rows, output, target, arguments.dtype)
    size = _size(output)
    console.line(f"{output}: {target}, {size / 1e6:.1f} MB")
    for label, number in labels.items():
        console.line(f"label {label!r} is {number}")
    console.emit(
        {
            "command": "convert",
            "file": arguments.file,
            "output": str(output),
            "format": target,
            "bytes": size,
            "labels": labels,
        }
    )


def _target_format(path: str) -> str:
    named = format_of(path)
    if named != "libsvm":
        return named
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    if suffixes and suffixes[-1] in (".gz", ".bz2", ".xz", ".zst"):
        return "libsvm"
    return "libsvm" if suffixes and suffixes[-1] in _TEXT else "directory"


def _write(rows: Rows, output: Path, target: str, dtype: str) -> dict[str, int]:
    """Write rows, and return the numbers that text labels were given."""
    if rows.y is None:
        raise ValueError(f"{rows.path} has no targets")
    X, y, labels = rows.X, rows.y, {}
    if target in ("libsvm", "directory") and y.dtype.kind not in "fiub":
        names, y = np.unique(y, return_inverse=True)
        labels = {str(name): number for number, name in enumerate(names)}
    if target == "npz":
        save_npz(str(output), X, y)
    elif target == "csv":
        save_csv(str(output), X.toarray() if is_sparse(X) else X, y, rows.names)
    elif target == "libsvm":
        dump_libsvm(X, y, str(output), zero_based=False)
    else:
        text = io.BytesIO()
        dump_libsvm(X, y, text, zero_based=False)
        text.seek(0)
        options: dict[str, Any] = {"n_features": X.shape[1], "zero_based": False}
        convert_libsvm(text, output, dtype=dtype, **options)
    return labels


def _size(path: Path) -> int:
    if path.is_dir():
        return sum(os.path.getsize(file) for file in path.iterdir() if file.is_file())
    return path.stat().st_size
