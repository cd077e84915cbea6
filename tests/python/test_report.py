"""Reports as pages and as Markdown: complete, self-contained, escaped, readable."""

import re
import warnings
from html.parser import HTMLParser
from itertools import pairwise
from xml.etree import ElementTree

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.cluster import KMeans
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.metrics import make_scorer, mean_absolute_error
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    RepeatedKFold,
    ShuffleSplit,
    TimeSeriesSplit,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import onefold
from onefold.learners import Pegasos
from onefold.report._content import content_of
from onefold.report._cost import MEANINGS
from onefold.report._figures import NO_FIGURES, figures_of
from onefold.report._style import STYLE

X, y = load_diabetes(return_X_y=True)
IRIS = load_iris(return_X_y=True)
CANCER = load_breast_cancer(return_X_y=True)
VOID = {"meta", "br", "link", "img", "input", "hr"}
EVIL = "<script>alert(1)</script>\"'&`|*[x](http://evil.example)"


class Page(HTMLParser):
    """Reads a page: its tags, which must be balanced, its attributes and its text."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.attributes, self.words = [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += [(tag, name, value) for name, value in attributes]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += [(tag, name, value) for name, value in attributes]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.words).split()).replace("\u00a0", " ")


def quietly(make):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make()


def failing_folds():
    class Failing(GaussianNB):
        def fit(self, X, y, sample_weight=None):
            if X[0, 0] > 6:
                raise ValueError("no")
            return super().fit(X, y)

    return onefold.cross_validate(Failing(), *IRIS, cv=KFold(3), engine="refit")


def search(estimator, grid, **keywords):
    data = keywords.pop("data", (X, y))
    return onefold.GridSearchCV(estimator, grid, **keywords).fit(*data).result_


KINDS = {
    "regression": lambda: onefold.cross_validate(Ridge(), X, y, cv=10),
    "leave-one-out": lambda: onefold.cross_validate(Ridge(), X, y, cv="loo"),
    "two classes": lambda: onefold.cross_validate(
        make_pipeline(StandardScaler(), LogisticRegression()),
        *CANCER,
        cv=5,
        scoring=["accuracy", "roc_auc", "neg_log_loss"],
    ),
    "certified": lambda: onefold.cross_validate(
        make_pipeline(StandardScaler(), LogisticRegression()), *CANCER, cv="loo"
    ),
    "three classes": lambda: onefold.cross_validate(GaussianNB(), *IRIS),
    "names of classes": lambda: onefold.cross_validate(
        GaussianNB(), IRIS[0], load_iris().target_names[IRIS[1]]
    ),
    "tree": lambda: onefold.cross_validate(
        Pegasos(), *IRIS, cv=10, engine="tree", engine_options={"check": 5}
    ),
    "time series": lambda: onefold.cross_validate(Ridge(), X, y, cv=TimeSeriesSplit(4)),
    "repeated": lambda: onefold.cross_validate(
        Ridge(), X, y, cv=RepeatedKFold(n_splits=3, n_repeats=2, random_state=0)
    ),
    "Monte-Carlo": lambda: onefold.cross_validate(
        GaussianNB(), *IRIS, cv=ShuffleSplit(4, random_state=0)
    ),
    "holdout": lambda: onefold.cross_validate(Ridge(), X, y, cv=[(range(300), range(300, 442))]),
    "groups": lambda: onefold.cross_validate(
        Ridge(), X, y, cv=GroupKFold(4), groups=np.arange(442) // 7
    ),
    "weights": lambda: onefold.cross_validate(
        Ridge(), X, y, sample_weight=np.linspace(1, 2, 442), weighted_scores=True
    ),
    "several outputs": lambda: onefold.cross_validate(
        LinearRegression(), X, np.stack([y, -y], axis=1), cv=5
    ),
    "clusters": lambda: onefold.cross_validate(
        KMeans(3, n_init=1, random_state=0), X, cv=3, engine="refit"
    ),
    "tiny": lambda: onefold.cross_validate(Ridge(), X[:4], y[:4], cv=2),
    "failed fits": failing_folds,
    "own metric": lambda: onefold.cross_validate(
        Ridge(), X, y, scoring=make_scorer(mean_absolute_error, greater_is_better=False)
    ),
    "search": lambda: search(Ridge(), {"alpha": [0.01, 0.1, 1]}, cv=10),
    "search, leave-one-out": lambda: search(Ridge(), {"alpha": [0.01, 0.1, 1]}, cv="loo"),
    "search of words": lambda: search(
        SVC(), {"kernel": ["linear", "rbf"], "C": [1, 10, 100]}, data=IRIS
    ),
    "search without answers": lambda: search(Ridge(), {"alpha": [1, 10]}, keep=None),
    "search without a choice": lambda: search(
        Ridge(), {"alpha": [1, 10]}, scoring=["r2", "neg_mean_squared_error"], refit=False
    ),
    "random search": lambda: (
        onefold.RandomizedSearchCV(
            KNeighborsRegressor(), {"n_neighbors": range(1, 50)}, n_iter=25, random_state=0
        )
        .fit(X, y)
        .result_
    ),
    "search of nothing": lambda: search(Ridge(), {}, cv=3),
    "search with failed fits": lambda: search(
        SVC(), {"C": [-1.0, 1.0, 2.0]}, data=IRIS, engine="refit"
    ),
}


@pytest.fixture(scope="module")
def results():
    return {name: quietly(make) for name, make in KINDS.items()}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_result_has_a_page_and_a_text(kind, results):
    result = results[kind]
    page = Page(result.to_html())
    assert {"h1", "main", "footer"} <= set(page.tags)
    content = content_of(result)
    text = result.to_markdown()
    for check in content.checks:
        assert check.sentence.split(" ±")[0] in page.text
        assert check.number in text
    for own in content.headlines:
        assert own.text in page.text
        assert own.text in text
    for name, count, meaning in content.cost:
        assert meaning != ""
        assert f"{count:,}" in page.text
        assert f"| {name}" in text
    for note in content.notes:
        assert " ".join(note.split()) in page.text
    assert "nan" not in page.text.split()
    assert content.call.splitlines()[0] in text
    assert "onefold 0." in page.text


@pytest.mark.parametrize("kind", KINDS)
def test_pages_load_nothing_and_run_nothing(kind, results):
    page = Page(results[kind].to_html())
    assert not {"script", "link", "img", "iframe", "object", "embed", "base"} & set(page.tags)
    for _, name, value in page.attributes:
        assert name not in ("src", "srcset", "data", "action")
        assert not name.startswith("on")
        assert not (name == "xlink:href" and not re.fullmatch(r"#\w+", value))
        assert not (name == "style" and "url" in value)
        assert not (name == "clip-path" and not re.fullmatch(r"url\(#\w+\)", value))
        assert not (name == "href" and not value.startswith(("#", "https://")))
    assert "url(" not in STYLE
    assert "@import" not in STYLE
    policies = [value for tag, name, value in page.attributes if tag == "meta" and value]
    assert any("default-src 'none'" in value for value in policies)


def figures(result):
    return figures_of(result, content_of(result).labels)


@pytest.mark.parametrize("kind", KINDS)
def test_figures_are_well_formed_and_described(kind, results):
    drawn = figures(results[kind])
    is_lacking = kind in ("search without a choice", "leave-one-out", "search, leave-one-out")
    assert drawn or is_lacking
    for figure in drawn:
        root = ElementTree.fromstring(figure.svg)
        assert root.get("role") == "img"
        assert len(root.get("aria-label")) > 20
        assert root.find("{http://www.w3.org/2000/svg}title").text
        assert len(root.get("viewBox").split()) == 4
        assert "nan" not in figure.svg
        # These follow the page, light or dark.
        assert "#000000" not in figure.svg
        assert "#ffffff" not in figure.svg


@pytest.mark.parametrize(
    ("kind", "titles"),
    [
        ("regression", ["r2 of the test sets", "Predicted against actual"]),
        (
            "two classes",
            [
                *(f"{name} of the test sets" for name in ("accuracy", "roc_auc", "neg_log_loss")),
                "ROC curve",
            ],
        ),
        ("three classes", ["accuracy of the test sets"]),
        (
            "search",
            [
                "r2 by alpha",
                "Differences from the choice",
                "r2 of the test sets",
                "Predicted against actual",
            ],
        ),
    ],
)
def test_figures_are_plots_of_the_result(kind, titles, results):
    drawn = figures(results[kind])
    assert [figure.title for figure in drawn] == titles
    again = figures(results[kind])
    assert [figure.svg for figure in drawn] == [figure.svg for figure in again]


def test_figures_do_not_depend_on_the_style_of_the_caller(results):
    import matplotlib as mpl

    expected = figures(results["regression"])[0].svg
    with mpl.rc_context({"axes.facecolor": "red", "font.size": 30}):
        assert figures(results["regression"])[0].svg == expected


def test_reports_without_matplotlib_say_how_to_get_figures(monkeypatch, results):
    monkeypatch.setattr("onefold.report._figures.find_spec", lambda name: None)
    for kind in ("regression", "search"):
        page = Page(results[kind].to_html())
        assert "svg" not in page.tags
        assert NO_FIGURES in page.text
        assert results[kind].to_markdown()


@pytest.mark.parametrize("kind", KINDS)
def test_saved_results_have_the_same_report(kind, results):
    result = results[kind]
    again = type(result).from_json(result.to_json())
    text = again.to_markdown()
    if not any(note.startswith("not saved") for note in again.notes):
        assert text == result.to_markdown()


@pytest.mark.parametrize("kind", KINDS)
def test_tables_of_markdown_have_as_many_cells_in_every_row(kind, results):
    lines = results[kind].to_markdown().splitlines()
    for line, following in pairwise(lines):
        if line.startswith("|") and following.startswith("|"):
            n_cells = len(re.findall(r"(?<!\\)\|", line))
            assert len(re.findall(r"(?<!\\)\|", following)) == n_cells


NAMESPACE = {
    "onefold": onefold,
    "KFold": KFold,
    "Ridge": Ridge,
    "GaussianNB": GaussianNB,
    "SVC": SVC,
    "Pipeline": type(make_pipeline(Ridge())),
    "StandardScaler": StandardScaler,
    "LogisticRegression": LogisticRegression,
    "Pegasos": Pegasos,
    "groups": np.arange(442) // 7,
}


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("regression", (X, y)),
        ("leave-one-out", (X, y)),
        ("two classes", CANCER),
        ("three classes", IRIS),
        ("tree", IRIS),
        ("time series", (X, y)),
        ("repeated", (X, y)),
        ("groups", (X, y)),
        ("search", (X, y)),
        ("search of words", IRIS),
        ("search without a choice", None),
    ],
)
def test_the_call_of_a_report_gives_the_same_scores(kind, data, results):
    result = results[kind]
    call = content_of(result).call
    if data is None:
        assert call.startswith("search = onefold.GridSearchCV(\n    estimator,")
        return
    names = NAMESPACE | {"X": data[0], "y": data[1], "result": result}
    quietly(lambda: exec(call, names))
    if "search" in kind:
        found, expected = names["search"].result_.scores(), result.scores()
    else:
        found, expected = (
            np.array(list(names["result"].scores.values())),
            np.array(list(result.scores.values())),
        )
    np.testing.assert_array_equal(found, expected)


# Text of users


class Named(ClassifierMixin, BaseEstimator):
    """Predicts the first class; its repr and its parameters are hostile."""

    def __init__(self, value="x", depth=1):
        self.value = value
        self.depth = depth

    def __repr__(self, N_CHAR_MAX=700):
        return f"Named({self.value})"

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.repeat(self.classes_[:1], len(X))


def hostile_results():
    hostile = type(EVIL, (Named,), {})
    labels = np.array([f"{EVIL}{own}" for own in IRIS[1]])
    result = onefold.cross_validate(
        hostile(EVIL), IRIS[0], labels, engine="refit", scoring={EVIL: "accuracy"}
    )
    result.notes.append(EVIL)
    grid = {"value": [EVIL, "b"], "depth": [1, 2, 3]}
    found = onefold.GridSearchCV(hostile(), grid, engine="refit").fit(IRIS[0], labels).result_
    found.notes.append(EVIL)
    return [result, found]


@pytest.mark.parametrize("number", [0, 1])
def test_text_of_users_stays_text(number):
    result = quietly(hostile_results)[number]
    for text in (result.to_html(), result._repr_html_()):
        page = Page(text)
        assert "script" not in page.tags
        assert not [value for _, name, value in page.attributes if name == "href" and value]
        assert "<script>alert(1)</script>" in page.text
    text = result.to_markdown()
    outside = re.sub(r"(?s)(`{3,})python.*?\n\1", "", text)
    assert "<script" not in outside
    assert re.search(r"(?<!\\)\]\(http", outside) is None
    assert re.search(r"(?<!\\)`", outside) is None


def test_reprs_that_fail_do_not_end_a_cross_validation():
    class Silent(GaussianNB):
        def __repr__(self, N_CHAR_MAX=700):
            raise RuntimeError("no")

    result = onefold.cross_validate(Silent(), *IRIS, engine="refit")
    assert result.settings["estimator"] == "Silent"
    assert "Silent" in result.to_markdown()


def test_settings_have_no_addresses():
    def own_metric(y_true, y_pred):
        return 0.5

    result = onefold.cross_validate(Ridge(), X, y, scoring=make_scorer(own_metric))
    assert " at 0x" not in str(result.settings)
    assert "scoring=scoring" in result.to_markdown()


# Files, notebooks, words


def test_pages_are_written_to_files(tmp_path, results):
    result = results["regression"]
    assert result.to_html(tmp_path / "report.html") is None
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == result.to_html()
    with pytest.raises(FileNotFoundError):
        result.to_html(tmp_path / "missing" / "report.html")


@pytest.mark.parametrize("kind", ["regression", "search", "three classes", "tiny"])
def test_notebooks_show_the_short_form(kind, results):
    result = results[kind]
    text = result._repr_html_()
    page = Page(text)
    assert len(text) < len(result.to_html()) / 2
    flagged = [check for check in result.checks() if check.verdict in ("look", "problem")]
    assert page.tags.count("li") == len(flagged)
    for check in flagged:
        assert check.sentence in page.text


def test_links_lead_to_the_documentation(monkeypatch, results):
    monkeypatch.setattr("onefold.report._check.documentation", lambda: "https://example.org/doc")
    result = results["search"]
    address = "https://example.org/doc/checks.html#of1"
    links = [value for _, name, value in Page(result.to_html()).attributes if name == "href"]
    assert address in links
    assert len(links) == 11
    assert f"[OF1]({address})" in result.to_markdown()


def test_searches_say_that_their_score_is_optimistic(results):
    assert "optimistic" in results["search"].to_markdown()
    assert "optimistic" not in results["regression"].to_markdown()


def test_what_the_error_bar_means_depends_on_the_test_sets(results):
    said = {
        kind: content_of(results[kind]).meanings[0]
        for kind in ("regression", "repeated", "Monte-Carlo", "holdout")
    }
    assert "root of their number" in said["regression"]
    assert "one partition" in said["repeated"]
    assert "Nadeau and Bengio" in said["Monte-Carlo"]
    assert said["holdout"] == "One test set has no standard error."


def test_undefined_means_are_replaced_by_the_pooled_score(results):
    pooled = results["leave-one-out"].pooled
    assert f"{pooled:.4g} (pooled)" in results["leave-one-out"].to_markdown()


def test_every_counter_has_a_meaning(results):
    for result in results.values():
        assert set(result.cost) <= set(MEANINGS)


def test_old_results_without_settings_have_a_report(results):
    state = results["regression"].copy()
    del state.__dict__["settings"]
    assert "Ridge(...)" in state.to_markdown()
    assert Page(state.to_html()).tags


# Colors


def luminance(color):
    channels = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first, second):
    low, high = sorted([luminance(first), luminance(second)])
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", [0, 1, 2])
def test_text_has_enough_contrast_in_light_dark_and_print(theme):
    block = re.findall(r":root \{(.*?)\}", STYLE, flags=re.DOTALL)[theme]
    colors = dict(re.findall(r"--([\w-]+): (#\w+);", block))
    colors = {
        k: v if len(v) == 7 else "#" + "".join(2 * c for c in v[1:]) for k, v in colors.items()
    }
    pairs = [("ink", "page"), ("ink", "panel"), ("soft", "page"), ("soft", "panel")]
    pairs += [("accent", "page"), *((name, f"{name}-page") for name in ("ok", "look", "problem"))]
    for text, ground in [*pairs, ("none", "none-page")]:
        assert contrast(colors[text], colors[ground]) >= 4.5, (text, ground)
    for mark in ("accent", "second"):
        assert contrast(colors[mark], colors["page"]) >= 3


# Words


@pytest.mark.parametrize(
    ("estimator", "title", "label"),
    [
        (make_pipeline(StandardScaler(), Ridge()), "Pipeline of StandardScaler and Ridge", "r2"),
        (Ridge(), "Ridge", "r2"),
    ],
)
def test_pipelines_and_default_metrics_have_names(estimator, title, label):
    X, y = load_diabetes(return_X_y=True)
    result = onefold.cross_validate(estimator, X, y, cv=3)
    lines = result.to_markdown().splitlines()
    assert lines[0] == f"# {title}"
    assert lines[4].startswith(f"**{label} 0.")
    assert "scoring=" not in result.to_markdown(), "the call has none"
