"""Plots of searches: validation curves, heat maps and comparisons of candidates."""

import numpy as np
import pytest
from scipy.stats import loguniform
from scipy.stats import t as student
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.linear_model import Ridge
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import onefold
from onefold.plotting._style import scale_of

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")

# matplotlib 3.9 reads the labels of logarithmic axes by functions that pyparsing has renamed.
pytestmark = pytest.mark.filterwarnings(r"ignore:.*deprecated(,| -) use:DeprecationWarning")

DIABETES = load_diabetes(return_X_y=True)
ALPHAS = [0.001, 0.01, 0.1, 0.4, 1.0, 10.0]
GRID = {"svc__C": [0.1, 1, 10], "svc__gamma": [0.001, 0.01, 0.1, "scale"]}


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def ridge():
    search = onefold.GridSearchCV(
        Ridge(), {"alpha": ALPHAS}, cv=10, rule="one_se", return_train_score=True
    )
    return search.fit(*DIABETES).result_


@pytest.fixture(scope="module")
def svc():
    X, y = load_breast_cancer(return_X_y=True)
    pipeline = make_pipeline(StandardScaler(), SVC())
    return onefold.GridSearchCV(pipeline, GRID, cv=3).fit(X[::3], y[::3]).result_


def labels_of(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def line_with(ax, words):
    [found] = [line for line in ax.lines if words in str(line.get_label())]
    return found


@pytest.mark.parametrize("kind", ["validation_curve", "heatmap", "comparison", "scores", "roc"])
def test_a_plot_draws_into_given_axes_and_returns_them(svc, kind):
    _, ax = plt.subplots()
    assert svc.plot(kind, ax=ax) is ax
    ax.figure.canvas.draw()


def test_the_default_depends_on_the_number_of_parameters(ridge, svc):
    assert ridge.plot().get_xlabel() == "alpha"
    ax = svc.plot()
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("svc__C", "svc__gamma")
    kernels = onefold.GridSearchCV(SVC(), {"kernel": ["linear", "rbf"]}, cv=3)
    ax = kernels.fit(*load_iris(return_X_y=True)).result_.plot()
    assert ax.get_xlabel().startswith("difference of score\nfrom kernel=")


# Validation curves


def test_the_curve_has_means_errors_and_choices(ridge):
    ax = ridge.plot("validation_curve")
    means, errors = ridge.table["mean_test_score"], ridge.to_frame()["std_error_test_score"]
    line = line_with(ax, "test sets")
    assert line.get_xdata().tolist() == ALPHAS
    assert np.array_equal(line.get_ydata(), means)
    assert ax.get_xscale() == "log"
    assert np.array_equal(line_with(ax, "training").get_ydata(), ridge.table["mean_train_score"])
    best = int(means.argmax())
    limit = line_with(ax, "best − standard error").get_ydata()[0]
    assert limit == pytest.approx(means[best] - errors[best])
    simplest = line_with(ax, "simplest within one standard error, chosen").get_xdata()[0]
    assert simplest == ALPHAS[ridge.best]
    assert ridge.best != best
    assert [line.get_xdata()[0] for line in ax.lines if line.get_label() == "best"] == [
        ALPHAS[best]
    ]


def test_other_parameters_have_lines_of_their_own(svc):
    ax = svc.plot("validation_curve", param="C")
    assert ax.get_xlabel() == "svc__C"
    lines = [label for label in labels_of(ax) if label.startswith("gamma=")]
    assert lines == ["gamma=0.001", "gamma=0.01", "gamma=0.1", "gamma=scale"]
    drawn = line_with(ax, "gamma=0.01").get_ydata()
    params, means = svc.table["params"], svc.table["mean_test_score"]
    expected = [m for own, m in zip(params, means, strict=True) if own["svc__gamma"] == 0.01]
    assert drawn.tolist() == expected


def test_values_that_are_no_numbers_stand_side_by_side(svc):
    ax = svc.plot("validation_curve", param="svc__gamma")
    texts = [text.get_text() for text in ax.get_xticklabels()]
    assert texts == ["0.001", "0.01", "0.1", "scale"]
    with pytest.raises(ValueError, match=r"param must be one of \['svc__C', 'svc__gamma'\].*'nu'"):
        svc.plot("validation_curve", param="nu")


def test_no_limit_stands_after_the_numbers():
    X, y = load_iris(return_X_y=True)
    grid = {"max_depth": [None, 1, 3]}
    search = onefold.GridSearchCV(DecisionTreeClassifier(random_state=0), grid, cv=3).fit(X, y)
    ax = search.result_.plot("validation_curve")
    assert [text.get_text() for text in ax.get_xticklabels()] == ["1", "3", "None"]
    means = search.cv_results_["mean_test_score"]
    assert line_with(ax, "test sets").get_ydata().tolist() == means[[1, 2, 0]].tolist()


def test_a_parameter_that_all_candidates_have_is_preferred():
    X, y = load_iris(return_X_y=True)
    grid = [{"kernel": ["linear"], "C": [1, 10]}, {"kernel": ["rbf"], "C": [1], "gamma": [1, 2, 3]}]
    result = onefold.GridSearchCV(SVC(), grid, cv=3).fit(X, y).result_
    assert result.plot("validation_curve").get_xlabel() == "C"


def test_a_candidate_that_failed_is_left_out():
    search = onefold.GridSearchCV(Ridge(), {"alpha": [-1, 1, 10]}, cv=3, error_score=np.nan)
    with pytest.warns(match="alpha|non-finite|failed"):
        result = search.fit(*DIABETES).result_
    ax = result.plot("comparison")
    assert [text.get_text() for text in ax.get_yticklabels()] == ["alpha=1", "alpha=10"]
    assert "1 of 3 candidates are not shown" in labels_of(ax)
    assert result.plot("validation_curve").has_data()


def test_what_is_simpler_can_be_said():
    X, y = load_iris(return_X_y=True)
    grid = {"n_neighbors": range(1, 22, 4), "weights": ["uniform", "distance"]}
    result = onefold.GridSearchCV(KNeighborsClassifier(), grid, cv=10).fit(X, y).result_
    assert not any("simplest" in label for label in labels_of(result.plot("validation_curve")))
    ax = result.plot("validation_curve", simpler=lambda own: -own["n_neighbors"])
    limit = line_with(ax, "best − standard error").get_ydata()[0]
    near = result.table["mean_test_score"] >= limit
    known = zip(result.table["params"], near, strict=True)
    simplest = max(own["n_neighbors"] for own, is_near in known if is_near)
    assert line_with(ax, "simplest").get_xdata()[0] == simplest
    with pytest.raises(ValueError, match="simpler must be a callable or a dict"):
        result.plot("validation_curve", simpler="n_neighbors")


def test_a_pooled_metric_has_no_errors():
    with pytest.warns(match="not defined on every test set"):
        search = onefold.GridSearchCV(Ridge(), {"alpha": [0, *ALPHAS]}, cv="loo").fit(*DIABETES)
    ax = search.result_.plot("validation_curve")
    assert labels_of(ax) == ["mean on the test sets", "best, chosen"]
    assert ax.get_xscale() == "symlog"
    ax = search.result_.plot("comparison")
    assert "squared error" in ax.get_xlabel()


def test_a_metric_of_several_is_chosen():
    search = onefold.GridSearchCV(
        Ridge(),
        {"alpha": ALPHAS},
        scoring=["r2", "neg_mean_absolute_error"],
        refit=False,
        cv=5,
    )
    result = search.fit(*DIABETES).result_
    ax = result.plot("validation_curve", metric="neg_mean_absolute_error")
    assert ax.get_ylabel() == "neg_mean_absolute_error"
    assert not any("chosen" in label for label in labels_of(ax))
    with pytest.raises(ValueError, match="metric must be one of"):
        result.plot("validation_curve", metric="mse")
    with pytest.raises(
        ValueError, match="kind='residuals' does not apply: no candidate was chosen"
    ):
        result.plot("residuals")


@pytest.mark.parametrize(
    ("values", "scale"),
    [
        ([1, 2, 3, 4], "linear"),
        ([1, 2, 4, 8, 16], "log"),
        ([0.001, 0.01, 0.1, 1], "log"),
        ([0, 0.01, 0.1, 1], "symlog"),
        ([-1, 0, 1, 10], "linear"),
        ([1, 1000], "linear"),
        (range(1, 31, 2), "linear"),
        (np.random.default_rng(0).uniform(0, 1, 40), "linear"),
        (10 ** np.random.default_rng(0).uniform(-4, 2, 40), "log"),
    ],
)
def test_axes_are_logarithmic_where_values_are_geometric(values, scale):
    assert scale_of(values) == scale


# Heat maps


def test_the_heat_map_has_the_mean_of_every_pair(svc):
    ax = svc.plot("heatmap", params=("gamma", "C"))
    cells = ax.images[0].get_array()
    assert (ax.get_xlabel(), ax.get_ylabel(), cells.shape) == ("svc__gamma", "svc__C", (3, 4))
    for own, mean in zip(svc.table["params"], svc.table["mean_test_score"], strict=True):
        row, column = (GRID[name].index(own[name]) for name in ("svc__C", "svc__gamma"))
        assert cells[row, column] == mean
    assert len([text for text in ax.texts if text.get_text()]) == 12


@pytest.mark.parametrize("params", [("C",), "C", ("C", "nu"), ("C", "svc__C")])
def test_two_parameters_must_be_named(svc, params):
    with pytest.raises(ValueError, match="params must be two"):
        svc.plot("heatmap", params=params)


def test_of_three_parameters_the_best_over_the_third_is_shown():
    X, y = load_iris(return_X_y=True)
    grid = {"C": [0.1, 1, 10], "gamma": [0.01, 0.1, 1], "kernel": ["rbf", "sigmoid"]}
    result = onefold.GridSearchCV(SVC(), grid, cv=3).fit(X, y).result_
    ax = result.plot("heatmap")
    means = result.table["mean_test_score"].reshape(3, 3, 2)
    assert np.array_equal(ax.images[0].get_array(), means.max(axis=2).T)
    assert "each the best over kernel" in labels_of(ax)


def test_a_random_search_has_a_point_per_candidate():
    X, y = load_iris(return_X_y=True)
    distributions = {"C": loguniform(1e-2, 1e3), "gamma": loguniform(1e-4, 1)}
    search = onefold.RandomizedSearchCV(SVC(), distributions, n_iter=15, cv=3, random_state=0)
    result = search.fit(X, y).result_
    ax = result.plot("heatmap")
    assert len(ax.collections[0].get_offsets()) == 15
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    ax = result.plot("validation_curve", param="C")
    assert len(line_with(ax, "candidates").get_xdata()) == 15


def test_one_parameter_makes_no_heat_map(ridge):
    with pytest.raises(
        ValueError,
        match="kind='heatmap' does not apply: it needs two parameters that vary, and there is "
        "alpha; kinds that apply to this result: 'validation_curve', 'comparison', 'scores', ",
    ):
        ridge.plot("heatmap")


# Comparisons


def test_the_forest_has_the_intervals_of_the_corrected_test(ridge):
    ax = ridge.plot("comparison", level=0.9)
    found = ridge.compare()
    reach = student.ppf(0.95, 9) * found.corrected_error
    drawn = {}
    for container in ax.containers:
        line, _, [bars] = container.lines
        for x, y, segment in zip(*line.get_data(), bars.get_segments(), strict=True):
            drawn[int(y)] = (x, *segment[:, 0])
    for row in range(len(ALPHAS)):
        if found.candidate[row] != found.to:
            difference = found.difference[row]
            expected = difference, difference - reach[row], difference + reach[row]
            assert drawn[row] == pytest.approx(expected)
    assert len(drawn) == len(ALPHAS) - 1
    texts = [text.get_text() for text in ax.get_yticklabels()]
    assert texts == [f"alpha={own['alpha']:g}" for own in found.params]


def test_an_interval_without_zero_is_one_with_a_small_p(ridge):
    ax = ridge.plot("comparison", level=0.95)
    [clear] = [own for own in ax.containers if "without zero" in own.get_label()]
    rows = clear.lines[0].get_ydata().astype(int)
    assert sorted(rows) == np.flatnonzero(ridge.compare().p < 0.05).tolist()


def test_the_best_candidates_are_shown(svc):
    ax = svc.plot("comparison", top=5, rope=0.01, to=0)
    assert "equivalent: within ±0.01" in labels_of(ax)
    shown = len(ax.get_yticklabels())
    assert f"{12 - shown} of 12 candidates are not shown" in labels_of(ax)
    assert shown in (5, 6), "the one that is compared with is always shown"
    assert ax.get_xlabel() == "difference of score\nfrom C=0.1, gamma=0.001"


def test_one_test_set_cannot_be_compared():
    search = onefold.GridSearchCV(Ridge(), {"alpha": ALPHAS}, cv=onefold.holdout(0.3))
    result = search.fit(*DIABETES).result_
    assert result.plot().get_xlabel() == "alpha"
    with pytest.raises(
        ValueError, match="kind='comparison' does not apply: there is only one test"
    ):
        result.plot("comparison")


def test_one_candidate_has_the_plots_of_its_result():
    search = onefold.GridSearchCV(Ridge(), {"alpha": [1.0]}, cv=5).fit(*DIABETES)
    assert search.result_.plot().get_xlabel() == "fold"
    with pytest.raises(
        ValueError, match="kind='comparison' does not apply: there is only one cand"
    ):
        search.result_.plot("comparison")


# The chosen candidate


def test_other_kinds_are_those_of_the_chosen_candidate(ridge):
    drawn = ridge.plot("residuals").collections[0].get_offsets()
    chosen = ridge.chosen.plot("residuals").collections[0].get_offsets()
    assert np.array_equal(drawn, chosen)
    with pytest.raises(TypeError, match="kind='residuals' has no option 'metric'; it has 'fold'"):
        ridge.plot("residuals", metric="r2")
    with pytest.raises(ValueError, match=r"kind must be one of 'heatmap'.*'cost', got 'curve'"):
        ridge.plot("curve")


def test_answers_that_are_not_kept_are_not_plotted():
    search = onefold.GridSearchCV(Ridge(), {"alpha": ALPHAS}, cv=5, keep=None).fit(*DIABETES)
    with pytest.raises(ValueError, match=r"kind='residuals' does not apply: .*not kept"):
        search.result_.plot("residuals")


def test_a_saved_search_is_plotted_alike(svc):
    again = onefold.SearchResult.from_json(svc.to_json())
    for kind in ("heatmap", "validation_curve", "comparison"):
        assert labels_of(again.plot(kind)) == labels_of(svc.plot(kind))


def test_scores_are_written_into_wide_cells_only():
    grid = {"n_neighbors": list(range(1, 12)), "weights": ["uniform", "distance"]}
    X, y = load_iris(return_X_y=True)
    wide = onefold.GridSearchCV(KNeighborsClassifier(), grid, cv=3).fit(X, y).result_
    assert not wide.plot("heatmap").texts
    grid["n_neighbors"] = grid["n_neighbors"][:10]
    narrow = onefold.GridSearchCV(KNeighborsClassifier(), grid, cv=3).fit(X, y).result_
    assert len(narrow.plot("heatmap").texts) == 20


def test_axes_have_the_name_of_a_single_metric():
    options = {"cv": 3, "scoring": "neg_mean_squared_error"}
    search = onefold.GridSearchCV(Ridge(), {"alpha": ALPHAS}, **options).fit(*DIABETES)
    assert search.result_.plot("validation_curve").get_ylabel() == "neg_mean_squared_error"
    assert search.result_.plot("scores").get_ylabel() == "neg_mean_squared_error"


def test_long_names_of_classes_are_shortened():
    X, y = load_iris(return_X_y=True)
    names = np.array(["a class with a very long name", "versicolor", "virginica"])[y]
    result = onefold.cross_validate(KNeighborsClassifier(), X, names, cv=3)
    written = [own.get_text() for own in result.plot("confusion_matrix").get_yticklabels()]
    assert written == ["a class with a very…", "versicolor", "virginica"]
