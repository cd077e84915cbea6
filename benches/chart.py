"""Write the chart and the times of the README from the tables of `benches/results`: ``make chart``.

Every bar is one row of one table, named below by its file and the beginning of its figure; the
number is read from the column ``measured``. A row that is no longer there is an error, so that the
chart cannot show what the tables do not. The bars are the best cases of each engine; the line below
the title has the mean over the calls that users write, if `benches/results/user_calls.md` is there.
The times of the scripts at the top of the README are those of `benches/results/drop_in.md`.
"""

import math
import re
import sys
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benches" / "results"
README = ROOT / "README.md"
CHART = ROOT / "docs" / "_static" / "benchmarks.svg"

SKLEARN = "scikit-learn"

BARS = [
    # label, peer, file, beginning of the figure
    (
        "SequentialFeatureSelector, least squares, 10 folds",
        SKLEARN,
        "functions",
        "SequentialFeatureSelector, LinearRegression(), 20 of 60",
    ),
    (
        "ridge, 20 penalties, 10 folds, 581 012 × 54",
        "GridSearchCV",
        "virtual_cv",
        "10-fold, 20 penalties, faster than GridSearchCV",
    ),
    (
        "permutation test of ridge, 1 000 permutations",
        SKLEARN,
        "functions",
        "permutation_test_score, Ridge, 1000 permutations, 20,000 × 50, 10 folds, r2",
    ),
    (
        "leave-one-out of neighbors, 20 000 × 20",
        SKLEARN,
        "neighbors",
        "neighbors, leave-one-out, 20,000 × 20",
    ),
    (
        "Pegasos, 100 folds, 581 012 × 54",
        "SGDClassifier",
        "treecv",
        "faster than scikit-learn, KFold(100), defaults",
    ),
    (
        "logistic regression, 100 folds, 581 012 × 54",
        SKLEARN,
        "newton",
        "LogisticRegression, 100 folds, covtype",
    ),
    (
        "lasso, 100 penalties, 10 folds, 581 012 × 54",
        "LassoCV",
        "path",
        "LassoCV, 100 penalties, 10 folds",
    ),
    (
        "ridge, 20 penalties, leave-one-out, 581 012 × 54",
        "RidgeCV",
        "virtual_cv",
        "leave-one-out, 20 penalties, faster than RidgeCV",
    ),
    ("LDA, 10 folds, 200 000 × 50", SKLEARN, "neighbors", "LDA, 10 folds, 200,000 × 50"),
    (
        "SVC, 25 candidates, 5 folds, 5 000 rows of a9a",
        "GridSearchCV",
        "search",
        "SVC, 5 × 5 grid",
    ),
    (
        "imputer, encoder, scaler, ridge, 20 penalties",
        "GridSearchCV",
        "pipelines",
        "impute + one-hot + scale → Ridge, 20 penalties, 5 folds, 100000 rows, n_jobs=1",
    ),
    (
        "logistic regression, 10 folds, 581 012 × 54",
        SKLEARN,
        "newton",
        "LogisticRegression, 10 folds, covtype",
    ),
    (
        "scaler, PCA, SVC, 48 candidates",
        "GridSearchCV",
        "pipelines",
        "StandardScaler → PCA → SVC",
    ),
    (
        "SVC at its defaults, median of ten sets",
        SKLEARN,
        "svc_defaults",
        "SVC(), n_jobs=None, median of the sets",
    ),
    (
        "ridge, 20 penalties, leave-one-out, 2 000 × 5 000",
        "RidgeCV",
        "virtual_cv",
        "2 000 × 5 000 (dual), leave-one-out",
    ),
    (
        "logistic regression, sparse, 15 935 × 62 061",
        SKLEARN,
        "newton",
        "LogisticRegression, 10 folds, news20",
    ),
    ("lasso, 5 folds, 500 × 5 000", "LassoCV", "path", "LassoCV, 100 penalties, 5 folds, 500"),
    (
        "scaler, SVC, 25 candidates, 10 folds, digits",
        "GridSearchCV",
        "drop_in",
        "GridSearchCV of StandardScaler and SVC, 25 candidates",
    ),
]

TIMES = (
    # text before the time in the README, beginning of the figure, place of the time in its row
    (r"\| `from sklearn\.model_selection import GridSearchCV` \| ", "GridSearchCV of", 0),
    (r"\| `from onefold import GridSearchCV` \| ", "GridSearchCV of", 1),
    (r"rows takes (?=[\d.]+ s of CPU time)", "leave-one-out of LogisticRegression", 0),
    (r"one fit by scikit-learn takes ", "leave-one-out of LogisticRegression", 1),
    (r"rows takes (?=[\d.]+ s, \d+ passes)", "leave-one-out of Pegasos", 0),
)

WIDTH, LEFT, RIGHT, TOP, STEP, BAR = 860, 360, 165, 58, 24, 14
DECADES = 4

STYLE = """
text { font: 13px system-ui, -apple-system, "Segoe UI", sans-serif; fill: #1f2328 }
.title { font-size: 15px; font-weight: 600 } .quiet { fill: #59636e } .grid { stroke: #d1d9e0 }
.bar { fill: #0072b2 } .page { fill: #ffffff }
@media (prefers-color-scheme: dark) {
  text { fill: #f0f6fc } .quiet { fill: #9198a1 } .grid { stroke: #3d444d }
  .bar { fill: #56b4e9 } .page { fill: #0d1117 }
}
"""


def measured(name, figure):
    """Return how many times faster we were, from the row of a table that begins with a figure."""
    text = (RESULTS / f"{name}.md").read_text(encoding="utf-8")
    rows = [line.split(" | ") for line in text.splitlines() if line.startswith(f"| {figure}")]
    if len(rows) != 1:
        raise LookupError(f"{name}.md has {len(rows)} rows that begin with {figure!r}, not one")
    value = rows[0][2].strip()
    if not value.endswith("×"):
        raise ValueError(f"{name}.md: {figure!r} measured {value!r}, which is no ratio")
    return float(value[:-1].replace(",", ""))


def with_times(text):
    """Return the text of the README with the times of `benches/results/drop_in.md`."""
    results = (RESULTS / "drop_in.md").read_text(encoding="utf-8")
    for before, figure, place in TIMES:
        [row] = [line for line in results.splitlines() if line.startswith(f"| {figure}")]
        times = re.findall(r"([\d.]+) s\b", row)
        words = before.replace(" ", r"\s+")  # lines may break anywhere
        text, n_found = re.subn(rf"({words})[\d.]+(?=\s+s\b)", rf"\g<1>{times[place]}", text)
        if n_found != 1:
            raise LookupError(f"README.md has {n_found} places for the time of {figure!r}, not one")
    return text


def survey():
    """Return a line about the calls that users write, or None if they were not measured."""
    path = RESULTS / "user_calls.md"
    if not path.is_file():
        return None
    text = path.read_text(encoding="utf-8")
    number, mean, below = re.search(
        r"^(\d+) lines: geometric mean ([\d.]+×),.* (\d+) below 1×,", text, re.M
    ).groups()
    return f"{number} calls that users write: geometric mean {mean}, {below} of them below 1×"


def draw(bars, below_title=None):
    """Return the SVG of (label, peer, ratio), on a logarithmic axis from 1 to 10 000."""
    top = TOP + (STEP if below_title else 0)
    height = top + STEP * len(bars) + 30
    span = WIDTH - LEFT - RIGHT
    bottom = height - 26

    def place(ratio):
        return LEFT + span * math.log10(max(ratio, 1.0)) / DECADES

    title = "Times faster than the named peer, both in one run on two cores (logarithmic)"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'width="{WIDTH}" height="{height}" aria-label="{title}">',
        f"<title>{title}</title><style>{STYLE}</style>",
        f'<rect class="page" width="{WIDTH}" height="{height}" rx="6"/>',
        f'<text class="title" x="16" y="28">{title}</text>',
    ]
    if below_title:
        parts.append(f'<text x="16" y="50">{escape(below_title)}</text>')
    for decade in range(DECADES + 1):
        x = place(10**decade)
        parts.append(f'<path class="grid" d="M{x:.1f} {top - 10}V{bottom}"/>')
        label = f"{10**decade:,}×".replace(",", " ")
        parts.append(
            f'<text class="quiet" x="{x:.1f}" y="{bottom + 16}" text-anchor="middle">{label}</text>'
        )
    for row, (label, peer, ratio) in enumerate(bars):
        y, end = top + STEP * row, place(ratio)
        number = f"{ratio:,.0f}×".replace(",", " ") if ratio >= 10 else f"{ratio:.1f}×"
        parts += [
            f'<text x="{LEFT - 10}" y="{y + 12}" text-anchor="end">{escape(label)}</text>',
            f'<rect class="bar" x="{LEFT}" y="{y}" width="{max(end - LEFT, 1.5):.1f}" '
            f'height="{BAR}"/>',
            f'<text x="{end + 6:.1f}" y="{y + 12}">{number} '
            f'<tspan class="quiet">{escape(peer)}</tspan></text>',
        ]
    return "\n".join([*parts, "</svg>", ""])


def main():
    bars = [(label, peer, measured(name, figure)) for label, peer, name, figure in BARS]
    CHART.parent.mkdir(parents=True, exist_ok=True)
    CHART.write_text(draw(sorted(bars, key=lambda bar: -bar[2]), survey()), encoding="utf-8")
    README.write_text(with_times(README.read_text(encoding="utf-8")), encoding="utf-8")
    print(f"wrote {CHART.relative_to(ROOT)} and the times of README.md")


if __name__ == "__main__":
    sys.exit(main())
