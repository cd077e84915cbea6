"""The README's examples run, and print what it says."""

import io
import re
import runpy
from contextlib import redirect_stdout
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"


def test_the_first_example_prints_what_the_readme_shows():
    text = README.read_text(encoding="utf-8")
    code, shown = re.search(r"```python\n(.*?)```\s+```text\n(.*?)```", text, re.S).groups()
    assert text[: text.index("```python")].count("\n") < 20, "code within the first screen"
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(code, {})
    assert printed.getvalue() == shown


def test_the_script_prints_the_same_with_the_import_of_scikit_learn(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benches"))
    bench = runpy.run_path(str(ROOT / "benches" / "peers" / "drop_in.py"))
    ours, theirs = bench["scripts"]()
    assert "onefold" in ours
    assert "onefold" not in theirs
    assert bench["execute"](ours)[1] == bench["execute"](theirs)[1]


def test_the_times_are_those_of_the_results():
    chart = runpy.run_path(str(ROOT / "benches" / "chart.py"))
    text = README.read_text(encoding="utf-8")
    assert chart["with_times"](text) == text, "run make chart"
    changed = re.sub(r"(import GridSearchCV` \| )[\d.]+ s", r"\g<1>0 s", text)
    assert changed != text
    assert chart["with_times"](changed) == text


def test_the_readme_has_the_parts_in_their_order():
    text = README.read_text(encoding="utf-8")
    parts = (
        "pip install onefold",
        "```python",
        "```text",
        "![Times faster",
        "## Engines",
        "make demo",
        "make test",
        "## Limits",
        "## References",
    )
    places = [text.index(part) for part in parts]
    assert places == sorted(places)
    assert text.count("\n") < 170, "details belong in the documentation"


def test_the_chart_shows_what_the_tables_say():
    chart = runpy.run_path(str(ROOT / "benches" / "chart.py"))
    bars = [(label, peer, chart["measured"](*row)) for label, peer, *row in chart["BARS"]]
    drawn = chart["draw"](sorted(bars, key=lambda bar: -bar[2]), chart["survey"]())
    assert chart["CHART"].read_text(encoding="utf-8") == drawn, "run make chart"
    assert chart["CHART"].relative_to(ROOT).as_posix() in README.read_text(encoding="utf-8")


def test_links_of_the_readme_lead_somewhere():
    targets = re.findall(r"\]\(([^)#]+)", README.read_text(encoding="utf-8"))
    missing = [target for target in targets if not (ROOT / target).exists()]
    assert missing == []
