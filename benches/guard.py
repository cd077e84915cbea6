"""Compare the peer benchmarks of two builds: a base commit and the current tree.

    ONEFOLD_DATA=… python benches/guard.py BASE [--only treecv,svm] [--quick] [--repeat N]

BASE is a commit, or a checkout whose .venv holds a release build (``make .venv/bench``). A commit
is unpacked and built below target/guard, once; the current tree is built each time, uncommitted
changes included. Both builds are release wheels in virtual environments of their own.

Every tree runs its own benches/peers scripts, one after the other: base, new, base, new … for each
script, so that changes of the machine's speed affect both. The median of the repetitions counts.
Figures are read from ``--json`` where a script has it, else from its printed table. Both builds are
measured in the same way: the peers are left out only where the scripts of both trees can do so
(``--with-peers``: nowhere).

A figure is worse if it, or our own time in it, is more than 10 % worse than the base's, or if it
has disappeared. Exceptions:

- a ratio is not worse if our own time in it is not longer: then only the reference got faster;
- leave-one-out on covtype may take up to 25 passes over the rows;
- printed figures are rounded, and count as the best value that is printed so.

The column *spread* is the largest value of a build's repetitions over its smallest: a figure whose
spread is beyond 1.1 says little, and needs a quieter machine or a larger ``--repeat``. The exit
status is 1 if any figure is worse or any script fails.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[1]
TOLERANCE = 1.10
PASSES, MAX_PASSES = "covtype, leave-one-out against one pass", 25
OF_LEAVE_ONE_OUT = (PASSES, "covtype, cross_val_score(cv='loo') against fit")
"""Figures whose time is that of leave-one-out on covtype, with the options that follow them."""
MAX_LOAD = 0.5
SLACK = {"MB": 2.0, "% of X": 2.0}
"""Differences of memory that are noise, by unit."""


@dataclass
class Figure:
    """A figure of one build, with its value in every repetition."""

    unit: str
    better: str
    ours_unit: str
    values: list[float] = field(default_factory=list)
    ours: list[float] = field(default_factory=list)
    resolution: float = 0.0
    """Half a unit of the last printed digit of a value, relative to it."""
    ours_resolution: float = 0.0


# --- Building -------------------------------------------------------------------------------------


def run(*command, cwd=ROOT):
    """Run a command, and end the program with its output if it fails."""
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, text=True, capture_output=True, check=False
    )
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def build(tree, folder):
    """Install the release wheel of `tree` into a virtual environment; return its Python."""
    python, tools = folder / "venv" / "bin" / "python", folder / "venv" / "tools"
    if not tools.exists():
        run(sys.executable, "-m", "venv", folder / "venv")
        run(python, "-m", "pip", "install", "--quiet", "pip>=25.1", "maturin>=1.9.4,<2")
        group = f"{tree / 'pyproject.toml'}:bench"
        run(python, "-m", "pip", "install", "--quiet", "--group", group)
        tools.touch()
    wheels = folder / "wheels"
    shutil.rmtree(wheels, ignore_errors=True)
    maturin = [python.with_name("maturin"), "build", "--release", "--locked", "--out", wheels]
    run(*maturin, "--interpreter", python, cwd=tree)
    [wheel] = wheels.glob("*.whl")
    run(python, "-m", "pip", "install", "--quiet", wheel)
    run(python, "-m", "pip", "install", "--quiet", "--force-reinstall", "--no-deps", wheel)
    return python


def build_base(base):
    """Return the Python and the benches of a checkout, or of a commit that is built if needed."""
    tree = Path(base).resolve()
    if (tree / ".venv" / "bin" / "python").exists():
        return tree / ".venv" / "bin" / "python", tree / "benches"
    commit = run("git", "rev-parse", "--verify", f"{base}^{{commit}}").strip()
    folder = ROOT / "target" / "guard" / commit[:12]
    tree, ready = folder / "tree", folder / "ready"
    if not ready.exists():
        print(f"building {commit[:12]}", flush=True)
        tree.mkdir(parents=True, exist_ok=True)
        archive = folder / "tree.tar"
        run("git", "archive", "--output", archive, commit)
        run("tar", "-xf", archive, "-C", tree)
        build(tree, folder)
        ready.touch()
    return folder / "venv" / "bin" / "python", tree / "benches"


def build_new():
    """Build the current tree; return its Python and a copy of its benches."""
    print("building the current tree", flush=True)
    folder = ROOT / "target" / "guard" / "new"
    python = build(ROOT, folder)
    benches = folder / "benches"
    shutil.rmtree(benches, ignore_errors=True)
    shutil.copytree(ROOT / "benches", benches)
    return python, benches


# --- Running --------------------------------------------------------------------------------------


class Build:
    """A build and the figures that its scripts have printed."""

    def __init__(self, name, python, benches):
        self.name, self.python, self.benches = name, python, benches
        self.figures: dict[str, Figure] = {}
        self.failures: list[str] = []

    def path(self, script):
        """Return the path of a script."""
        return self.benches / "peers" / f"{script}.py"

    def options(self, script):
        """Return the help text of a script, which names its options."""
        return run(self.python, self.path(script), "--help")

    def run(self, script, options):
        """Run a script once and add its figures."""
        command = [self.python, self.path(script), *options]
        with tempfile.TemporaryDirectory() as folder:
            output = Path(folder, "figures.json")
            if "--json" in self.options(script):
                command += ["--json", output]
            done = subprocess.run(
                [str(part) for part in command], text=True, capture_output=True, check=False
            )
            if done.returncode:
                self.failures.append(f"{script} of {self.name}:\n{done.stderr[-2000:]}")
            elif output.exists():
                self.add_json(json.loads(output.read_text(encoding="utf-8")))
            else:
                for found in printed(script, done.stdout):
                    self.add(*found)

    def add_json(self, measurements):
        """Add the figures that a script has written."""
        for x in measurements:
            self.add(
                x["figure"], x["value"], x["unit"], x["better"], x["ours"], x["ours_unit"], 0, 0
            )

    def add(self, name, value, unit, better, ours, ours_unit, resolution, ours_resolution):
        """Add one repetition of a figure."""
        figure = self.figures.setdefault(name, Figure(unit, better, ours_unit))
        figure.resolution, figure.ours_resolution = resolution, ours_resolution
        if value is not None:
            figure.values.append(value)
        if ours is not None:
            figure.ours.append(ours)


def common_options(script, base, new, quick, with_peers):
    """Return the options with which both builds run a script."""
    options = []
    if script == "svm":
        options += [] if quick else ["--full"]
    elif quick:
        options.append("--quick")
    if not with_peers:
        if script == "svm":
            options += ["--peers", ""]
        elif all("--without-peers" in side.options(script) for side in (base, new)):
            options.append("--without-peers")
    return options


# --- Reading printed tables (scripts from before --json) ------------------------------------------


def number(text):
    """Return a printed number, and half a unit of its last digit relative to it."""
    text = text.replace(",", "")
    value = float(text)
    digits = text.partition("e")[0]
    decimals = len(digits.partition(".")[2])
    exponent = int(text.partition("e")[2] or 0)
    half = 0.5 * 10.0 ** (exponent - decimals)
    return value, half / value if value else float("inf")


NAME_WIDTH = 68
MEASURED = re.compile(r"\s(?P<value>\d+(\.\d+)?(e[+-]?\d+)?)(?P<unit>×| MB| ms| s|)(?=  |$)")
SECONDS = re.compile(r"([\d.]+) s\b")
PENALTIES = re.compile(
    r"^(?P<name>\S.*?) +(?P<ours>\d+\.\d{3}) +(?P<peer>\S.*?) +\d+\.\d{3} +(?P<ratio>[\d.]+)"
    r"(?P<unit>×| fits)[ ,]+wanted"
)
PEAK = re.compile(r"^(?P<name>peak memory above X, .*): (?P<value>[\d.]+)% of X, wanted")
OURS = re.compile(
    r"^  ours (?P<first>[\d.]+) s and, again, (?P<again>[\d.]+) s .*, (?P<n>\d+) iterations"
)


def printed(script, text):
    """Yield the arguments of `Build.add` for the figures that a script printed."""
    if script == "svm":
        yield from printed_svm(text)
    elif script == "virtual_cv":
        yield from printed_virtual_cv(text)
    else:
        yield from printed_figures(text)


def printed_figures(text):
    """Read lines of `Figures`: name, value, bound, whether it holds, detail."""
    parent, parent_better = "", "lower"
    for line in text.splitlines():
        if (found := MEASURED.search(line, NAME_WIDTH)) is None:
            continue
        name, rest = line[: found.start()].strip(), line[found.end() :]
        value, resolution = number(found["value"])
        if "≥" in rest or "≤" in rest:
            better = "higher" if "≥" in rest else "lower"
        elif name.startswith("…") and not re.search("against|faster", name):
            better = parent_better
        else:
            better = "higher" if "faster" in name else "lower"
        if name.startswith("…"):
            name = f"{parent} {name}"
        else:
            parent, parent_better = name, better
        ours = printed_ours(name, better, rest)
        yield name, value, found["unit"].strip(), better, ours[0], ours[1], resolution, ours[2]


def printed_ours(name, better, detail):
    """Read our side of a ratio from "… s / … s" or "… MB/s"; return value, unit, resolution."""
    if rate := re.search(r"([\d.]+) MB/s", detail):
        value, resolution = number(rate[1])
        return value, "MB/s", resolution
    sides = [SECONDS.search(side) for side in re.split(r" / ", detail, maxsplit=1)]
    if not all(sides):
        return None, "s", 0
    # "A against B" has A first, "A faster than B" has A last, except for one figure.
    is_first = better == "lower" or name.endswith("written faster than by scikit-learn")
    value, resolution = number(sides[0 if is_first else -1][1])
    return value, "s", resolution


def printed_virtual_cv(text):
    """Read the table of virtual_cv.py."""
    for line in text.splitlines():
        if found := PEAK.match(line):
            value, resolution = number(found["value"])
            yield found["name"], value, "% of X", "lower", None, "s", resolution, 0
        elif found := PENALTIES.match(line):
            value, resolution = number(found["ratio"])
            ours, ours_resolution = number(found["ours"])
            is_faster = found["unit"] == "×"
            relation = "faster than" if is_faster else "against"
            name = f"{found['name']}, {relation} {found['peer']}"
            better = "higher" if is_faster else "lower"
            yield name, value, "×", better, ours, "s", resolution, ours_resolution


def printed_svm(text):
    """Read the report of svm.py: a case, then our side of it."""
    case = ""
    for line in text.splitlines():
        if found := OURS.match(line):
            for run_name, group in (("first run", "first"), ("second run", "again")):
                value, resolution = number(found[group])
                yield f"{case}, {run_name}", value, "s", "lower", None, "s", resolution, 0
            iterations = float(found["n"])
            yield f"{case}, SMO iterations", iterations, "", "lower", None, "s", 0, 0
        elif not line.startswith(" "):
            case = line


# --- Comparing ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """A figure of both builds."""

    figure: str
    base: str
    new: str
    value: str
    ours: str
    spread: str
    verdict: str


def slowdown(base, new, better):
    """Return by which factor `new` is worse than `base`; below 1 if it is better."""
    worse, than = (new, base) if better == "lower" else (base, new)
    if than == 0:
        return 1.0 if worse == 0 else float("inf")
    return worse / than


def compare(name, base, new, allowance):
    """Compare a figure of two builds; None if it was not measured in both, by intent.

    The time of leave-one-out on covtype may be worse by the factor `allowance`.
    """
    if new is None:
        return Row(name, shown(base.values or base.ours, base.unit), "", "", "", "", "**missing**")
    if base is None:
        return None
    value = ours = None
    ours_tolerance = allowance if name.startswith(OF_LEAVE_ONE_OUT) else TOLERANCE
    value_tolerance = allowance if name in OF_LEAVE_ONE_OUT else TOLERANCE
    if base.ours and new.ours:
        better = "lower" if base.ours_unit == "s" else "higher"
        ours = slowdown(median(base.ours), median(new.ours), better)
        cells = shown(base.ours, base.ours_unit), shown(new.ours, base.ours_unit)
        spread = max(max(x) / min(x) for x in (base.ours, new.ours))
    if base.values and new.values:
        old, now = median(base.values), median(new.values)
        is_noise = abs(now - old) <= SLACK.get(base.unit, 0)
        value = 1.0 if is_noise else slowdown(old, now, base.better)
        cells = shown(base.values, base.unit), shown(new.values, base.unit)
        spread = max(max(x) / min(x) if min(x) > 0 else 1 for x in (base.values, new.values))
    if value is None and ours is None:
        return None
    verdict = ""
    if value is not None and value > value_tolerance * (1 + base.resolution):
        verdict = "**worse**" if ours is None or ours > 1 else "reference faster"
    if ours is not None and ours > ours_tolerance * (1 + base.ours_resolution):
        verdict = "**worse**"
    value, ours = (f"{factor:.2f}" if factor is not None else "" for factor in (value, ours))
    return Row(name, *cells, value, ours, f"{spread:.2f}", verdict)


def shown(values, unit):
    """Return the median with its unit."""
    value = median(values) if values else float("nan")
    text = f"{value:.3g}" if value < 1000 else f"{value:.0f}"
    return f"{text}{'' if unit == '×' else ' '}{unit}".strip()


def table(rows):
    """Return a markdown table with aligned columns."""
    cells = [("figure", "base", "new", "times worse", "our time", "spread", "verdict")]
    cells += [(x.figure, x.base, x.new, x.value, x.ours, x.spread, x.verdict) for x in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    padded = ([x.ljust(n) for x, n in zip(line, widths, strict=True)] for line in cells)
    lines = [f"| {' | '.join(line)} |" for line in padded]
    rule = "| " + " | ".join("-" * width for width in widths) + " |"
    return "\n".join([lines[0], rule, *lines[1:]])


def main():
    scripts = sorted(path.stem for path in (ROOT / "benches" / "peers").glob("*.py"))
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("base", help="commit, or checkout with a release build in .venv")
    parser.add_argument("--only", default=",".join(scripts), help="scripts, with commas")
    parser.add_argument("--quick", action="store_true", help="the scripts' quick modes")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each script and build")
    parser.add_argument("--with-peers", action="store_true", help="time the peers in both builds")
    parser.add_argument("--write", metavar="FILE", help="write the table to a file, too")
    arguments = parser.parse_args()
    chosen = arguments.only.split(",")
    if unknown := set(chosen) - set(scripts):
        parser.error(f"--only: {', '.join(sorted(unknown))} is not one of {', '.join(scripts)}")
    if not os.environ.get("ONEFOLD_DATA"):
        parser.error("set ONEFOLD_DATA to the folder with the data sets")
    base, new = Build("base", *build_base(arguments.base)), Build("new", *build_new())
    load = os.getloadavg()[0]
    busy = ": the machine is busy, times will not be reliable" if load > MAX_LOAD else ""
    print(f"load {load:.1f} before the first run{busy}", flush=True)
    rows = []
    for script in chosen:
        options = common_options(script, base, new, arguments.quick, arguments.with_peers)
        for repetition in range(arguments.repeat):
            for side in (base, new):
                print(f"{script}, {side.name}, run {repetition + 1}", flush=True)
                side.run(script, options)
    passes = base.figures.get(PASSES)
    allowance = max(TOLERANCE, MAX_PASSES / median(passes.values)) if passes else TOLERANCE
    for name in base.figures | new.figures:
        rows.append(compare(name, base.figures.get(name), new.figures.get(name), allowance))
    found = [row for row in rows if row is not None]
    worse = [row for row in found if row.verdict.startswith("**")]
    text = table(found)
    print(text)
    print(f"{len(found)} figures compared, {len(worse)} worse by more than 10 %")
    for failure in base.failures + new.failures:
        print(f"failed: {failure}")
    if arguments.write:
        Path(arguments.write).write_text(text + "\n", encoding="utf-8")
    sys.exit(1 if worse or base.failures or new.failures else 0)


if __name__ == "__main__":
    main()
