"""The LIBSVM reader against scikit-learn's, on covtype: every figure in one run.

    ONEFOLD_DATA=… python benches/peers/libsvm_reader.py [--quick] [--write] [--without-peers]

needs a release build (``make .venv/bench``) and covtype.libsvm.xz, which is unpacked to a temporary
file. The full run takes about two minutes, ``--quick`` half a minute; ``--write`` puts the table
into benches/results/libsvm_reader.md. Sides of a comparison take turns and the best of their times
counts. Peak memory is measured in a process of its own, from what it held before it began to read.
"""

import argparse
import gzip
import io
import lzma
import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from onefold import convert_libsvm, dump_libsvm, iter_libsvm, load_libsvm, open_libsvm

sys.path.insert(0, str(Path(__file__).parents[1]))
from common.memory import can_measure, kilobytes
from common.report import Figures, add_options, machine, write_figures
from common.timing import race, seconds

NAME = "covtype.libsvm.xz"


def unpacked(folder):
    """Write the plain file, and a gzip of it, into a folder."""
    source = os.environ.get("ONEFOLD_DATA")
    if not source or not Path(source, NAME).is_file():
        raise SystemExit(f"{NAME} is needed: set ONEFOLD_DATA to the folder that holds it")
    path = Path(folder, "covtype")
    with lzma.open(Path(source, NAME)) as packed, path.open("wb") as plain:
        shutil.copyfileobj(packed, plain)
    with path.open("rb") as plain, gzip.open(folder / "covtype.gz", "wb", 1) as packed:
        shutil.copyfileobj(plain, packed)
    return path


def read(figures, path, rounds, with_peers):
    """Whole files: text, then compressed."""
    zipped = path.with_suffix(".gz")
    best = race(
        rounds,
        sklearn=(lambda: load_svmlight_file(path)) if with_peers else None,
        one=lambda: load_libsvm(path, n_jobs=1),
        two=lambda: load_libsvm(path, n_jobs=2),
        zipped_sklearn=(lambda: load_svmlight_file(zipped)) if with_peers else None,
        zipped=lambda: load_libsvm(zipped, n_jobs=2),
    )
    # What is quick can be tried more often than what is slow.
    again = race(
        4 * rounds,
        one=lambda: load_libsvm(path, n_jobs=1),
        two=lambda: load_libsvm(path, n_jobs=2),
    )
    best |= {side: min(best[side], again[side]) for side in again}
    megabytes = path.stat().st_size / 1e6

    def line(name, ours, theirs, bound):
        rate, their_rate = megabytes / best[ours], megabytes / best[theirs]
        detail = f"{rate:.0f} MB/s, scikit-learn {their_rate:.1f}"
        figures.at_least(name, rate / their_rate, bound, detail=detail, rate=rate)

    line("covtype, one thread faster than scikit-learn", "one", "sklearn", 20)
    line("covtype, two threads faster than scikit-learn", "two", "sklearn", 40)
    line("covtype.gz, two threads faster than scikit-learn", "zipped", "zipped_sklearn", None)


def memory(figures, path, with_peers):
    """Peak memory above what was there before, against the arrays that come out."""
    if not can_measure():
        return figures.skip("covtype, peak memory", "the system does not tell")
    for side, bound in (("1", 1.5), ("2", 1.5), ("sklearn", None)):
        side_name = "scikit-learn" if side == "sklearn" else f"{side} thread{'s' * (side == '2')}"
        name = f"covtype, peak memory of {side_name}"
        if side == "sklearn" and not with_peers:
            figures.skip(name, "peer left out")
            continue
        command = [sys.executable, __file__, "--peak", side, str(path)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        peak, arrays = map(float, done.stdout.split())
        detail = f"{peak / 1e6:.0f} MB for arrays of {arrays / 1e6:.0f} MB"
        figures.at_most(name, peak / arrays, bound, detail=detail)
    return None


def print_peak(side, path):
    """Read the file, and print the bytes it took at most, and those of the arrays."""

    def work(source):
        if side == "sklearn":
            return load_svmlight_file(source)
        return load_libsvm(source, n_jobs=int(side))

    work(io.BytesIO(b"1 1:1\n"))  # what is imported and allocated once is not the reader's
    before = kilobytes("VmRSS")
    X, y = work(path)
    arrays = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes + y.nbytes
    print((kilobytes("VmHWM") - before) * 1024, arrays)


def rest(figures, path, folder, rounds, with_peers):
    """Blocks of rows, arrays on disk, writing."""
    whole = race(rounds, two=lambda: load_libsvm(path, n_jobs=2))["two"]
    known = {"n_features": 54, "zero_based": False, "n_jobs": 2}
    blocks = race(rounds, blocks=lambda: sum(1 for _ in iter_libsvm(path, **known)))["blocks"]
    figures.at_most("covtype, blocks of rows against the whole", blocks / whole, ours=blocks)
    arrays = folder / "arrays"
    convert = seconds(lambda: convert_libsvm(path, arrays))
    figures.at_most("covtype, conversion to arrays", convert, None, unit=" s")
    opened = race(5 * rounds, open=lambda: open_libsvm(arrays))["open"]
    figures.at_most("covtype, arrays opened again", opened * 1e3, 10, unit=" ms")
    X, y = load_libsvm(path)
    best = race(
        max(1, rounds // 3),
        sklearn=(lambda: dump_svmlight_file(X, y, str(folder / "theirs"))) if with_peers else None,
        ours=lambda: dump_libsvm(X, y, folder / "ours"),
    )
    detail = f"{best['ours']:.2f} s / {best['sklearn']:.2f} s"
    ratio = best["sklearn"] / best["ours"]
    name = "covtype, written faster than by scikit-learn"
    figures.at_least(name, ratio, detail=detail, ours=best["ours"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    parser.add_argument("--write", action="store_true", help="write the table")
    parser.add_argument("--peak", nargs=2, help=argparse.SUPPRESS)
    add_options(parser)
    options = parser.parse_args()
    if options.peak:
        return print_peak(*options.peak)
    print(about := machine())
    figures, rounds, with_peers = Figures(), 2 if options.quick else 6, not options.without_peers
    with TemporaryDirectory() as folder:
        path = unpacked(Path(folder))
        read(figures, path, rounds, with_peers)
        memory(figures, path, with_peers)
        rest(figures, path, Path(folder), rounds, with_peers)
    print(figures.summary())
    figures.save(options.json)
    if options.write:
        write_figures("libsvm_reader.md", "The LIBSVM reader", about, figures)
    return None


if __name__ == "__main__":
    main()
