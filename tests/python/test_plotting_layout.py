"""Plots in plain figures, whose layout makes no room, and the costs of all engines."""

import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.ensemble import AdaBoostClassifier
from sklearn.linear_model import ElasticNet, LogisticRegression, Ridge, RidgeClassifier
from sklearn.model_selection import ShuffleSplit
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import onefold
from onefold.learners import Pegasos
from onefold.plotting import CV_KINDS, SEARCH_KINDS

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")

# matplotlib 3.9 reads the labels of logarithmic axes by functions that pyparsing has renamed.
pytestmark = pytest.mark.filterwarnings(r"ignore:.*deprecated(,| -) use:DeprecationWarning")


def kinds_of(result):
    kinds = SEARCH_KINDS if isinstance(result, onefold.SearchResult) else CV_KINDS
    return [kind for kind, how in kinds.items() if how.why_not(result) is None]


def grid_of_plots(draw):
    """Boxes of all that belongs to four axes of a plain figure."""
    figure, axes = plt.subplots(2, 2, figsize=(10, 8))
    for ax in axes.flat:
        draw(ax)
    figure.canvas.draw()
    boxes = [ax.get_tightbbox() for ax in axes.flat]
    plt.close(figure)
    return figure.bbox, boxes


def test_plots_in_plain_subplots_do_not_overlap():
    iris, cancer = load_iris(return_X_y=True), load_breast_cancer(return_X_y=True)
    rows, y = load_diabetes(return_X_y=True)
    grid = {"alpha": [0.01, 0.1, 1], "l1_ratio": [0.2, 0.5]}
    search = onefold.GridSearchCV(ElasticNet(), grid, cv=5).fit(rows, y).result_
    results = [
        onefold.cross_validate(KNeighborsClassifier(), *iris, cv=5),
        onefold.cross_validate(Pegasos(), *cancer, cv=8),
        onefold.cross_validate(Ridge(), rows, y, cv=5),
        search,
    ]
    seen = set()
    for result in results:
        for kind in kinds_of(result):
            if kind in seen:
                continue
            seen.add(kind)
            page, boxes = grid_of_plots(lambda ax, r=result, kind=kind: r.plot(kind, ax))
            for i, box in enumerate(boxes):
                assert page.x0 <= box.x0 < box.x1 <= page.x1, kind
                assert page.y0 <= box.y0 < box.y1 <= page.y1, kind
                assert not any(box.overlaps(other) for other in boxes[i + 1 :]), kind
    assert {"tree", "comparison", "cost", "heatmap", "scores", "influence"} <= seen


@pytest.mark.parametrize(
    "estimator",
    [LogisticRegression(max_iter=500), SVC(), GaussianNB(), KNeighborsClassifier(), Pegasos(),
     RidgeClassifier(), DecisionTreeClassifier(), AdaBoostClassifier(n_estimators=3)],
    ids=lambda estimator: type(estimator).__name__,
)  # fmt: skip
@pytest.mark.filterwarnings("ignore::onefold.RefitWarning")
def test_the_cost_of_every_engine_is_drawn(estimator):
    X, y = load_iris(return_X_y=True)
    for cv in (4, ShuffleSplit(3, random_state=0)):
        result = onefold.cross_validate(estimator, X, y, cv=cv)
        ax = result.plot("cost")
        if cv == 4 and result.cost.get("rows_fed"):
            assert any(result.engine in text.get_text() for text in ax.legend_.texts)
        else:
            assert "fits" in ax.get_xlabel()
            assert len(ax.patches) == sum(1 for count in result.cost.values() if count)
        plt.close("all")


def test_a_notebook_shows_the_short_report_with_its_figure():
    X, y = load_diabetes(return_X_y=True)
    result = onefold.cross_validate(Ridge(), X, y)
    search = onefold.GridSearchCV(Ridge(), {"alpha": [0.1, 1, 10]}).fit(X, y).result_
    for shown in (result, search):
        text = shown._repr_html_()
        assert text.count("<svg") == 1
        assert "<b>checks</b>" in text
        assert " s, " in text
        assert "<script" not in text
