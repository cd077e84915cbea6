"""Plots of cross-validation results: what is drawn, and what is refused."""

import subprocess
import sys

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import confusion_matrix, roc_auc_score, roc_curve
from sklearn.model_selection import KFold, RepeatedKFold, TimeSeriesSplit
from sklearn.naive_bayes import GaussianNB
from sklearn.preprocessing import scale

import onefold
from onefold.learners import GaussianDensity, Pegasos
from onefold.plotting import CV_KINDS, plot_comparison
from onefold.plotting._cost import rows_fed_by_tree
from onefold.plotting._tree import tree_nodes

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")

# matplotlib 3.9 reads the labels of logarithmic axes by functions that pyparsing has renamed.
pytestmark = pytest.mark.filterwarnings(r"ignore:.*deprecated(,| -) use:DeprecationWarning")


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return scale(X), y


@pytest.fixture(scope="module")
def binary(cancer):
    return onefold.cross_validate(GaussianNB(), *cancer, cv=10)


@pytest.fixture(scope="module")
def digits():
    return onefold.cross_validate(GaussianNB(), *load_digits(return_X_y=True), cv=5)


@pytest.fixture(scope="module")
def regression():
    return onefold.cross_validate(Ridge(0.1), *load_diabetes(return_X_y=True), cv=5)


@pytest.fixture(scope="module")
def tree(cancer):
    return onefold.cross_validate(Pegasos(), *cancer, cv=8)


def labels_of(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def label_with(ax, words):
    [found] = [label for label in labels_of(ax) if words in label]
    return found


def line_with(ax, words):
    [found] = [line for line in ax.lines if words in str(line.get_label())]
    return found


# Every kind


APPLIES = {
    "binary": ["scores", "roc", "precision_recall", "calibration", "confusion_matrix", "losses"],
    "digits": ["scores", "roc", "precision_recall", "calibration", "confusion_matrix", "losses"],
    "regression": ["scores", "residuals", "actual_vs_predicted", "losses", "influence", "cost"],
    "tree": ["scores", "roc", "precision_recall", "confusion_matrix", "influence", "tree", "cost"],
}


@pytest.mark.parametrize(("name", "kind"), [(n, k) for n, ks in APPLIES.items() for k in ks])
def test_a_plot_draws_into_given_axes_and_returns_them(name, kind, request):
    result = request.getfixturevalue(name)
    _, ax = plt.subplots()
    assert result.plot(kind, ax=ax) is ax
    assert ax.has_data()
    ax.figure.canvas.draw()


@pytest.mark.parametrize(("name", "kind"), [(n, k) for n, ks in APPLIES.items() for k in ks])
def test_a_plot_without_axes_makes_one_figure(name, kind, request):
    ax = request.getfixturevalue(name).plot(kind)
    assert plt.get_fignums() == [ax.figure.number]
    ax.figure.canvas.draw()


def test_the_default_is_the_first_kind_that_applies(binary):
    assert binary.plot().get_xlabel() == "fold"
    X, y = load_diabetes(return_X_y=True)
    with pytest.warns(match="not defined"):
        leave_one_out = onefold.cross_validate(Ridge(), X, y, cv="loo")
    assert leave_one_out.plot().get_ylabel().startswith("Residuals")


def test_an_unknown_kind_is_refused_with_the_kinds_there_are(binary):
    with pytest.raises(ValueError, match=r"kind must be one of 'scores', 'roc'.*got 'ROC'"):
        binary.plot("ROC")
    assert plt.get_fignums() == []


@pytest.mark.parametrize(
    ("name", "kind", "reason"),
    [
        ("binary", "residuals", r"it is for regression, and this is a classifier \(GaussianNB\)"),
        ("regression", "roc", r"it is for classifiers .* this is a regression \(Ridge\)"),
        ("regression", "confusion_matrix", "it is for classifiers"),
        ("tree", "calibration", "there are no held-out probabilities; .*scoring='neg_log_loss'"),
        ("regression", "tree", "it is for engine='tree', and this is engine='virtual'"),
    ],
)
def test_a_kind_that_does_not_apply_says_why_and_which_do(name, kind, reason, request):
    result = request.getfixturevalue(name)
    with pytest.raises(ValueError, match=f"kind={kind!r} does not apply: {reason}") as raised:
        result.plot(kind)
    listed = str(raised.value).rpartition("apply to this result: ")[2]
    named = [own.strip("'") for own in listed.split(", ")]
    assert set(APPLIES[name]) <= set(named) < set(CV_KINDS)
    for own in named:
        result.plot(own)
    assert len(plt.get_fignums()) == len(named)


def test_an_option_of_another_kind_is_refused(binary):
    with pytest.raises(TypeError, match="kind='scores' has no option 'fold'; it has 'metric', 'l"):
        binary.plot("scores", fold=1)
    with pytest.raises(TypeError, match="kind='cost' has no option 'metric'; it has no options"):
        binary.plot("cost", metric="accuracy")


def test_matplotlib_is_not_imported_before_it_is_needed_and_its_extra_is_named():
    code = """
import sys
import onefold, onefold.plotting
from sklearn.linear_model import Ridge
assert "matplotlib" not in sys.modules, "imported too early"
result = onefold.cross_validate(Ridge(), [[0.0], [1.0], [2.0], [4.0]] * 3, [0.0, 1.0, 2.0, 3.0] * 3)
sys.modules["matplotlib"] = sys.modules["matplotlib.pyplot"] = None
try:
    result.plot("scores")
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "plot needs matplotlib: pip install 'onefold[plot]'"


# Scores


def test_scores_show_every_fold_and_the_mean_with_its_error(binary):
    ax = binary.plot("scores")
    [points] = [line for line in ax.lines if line.get_marker() == "o"]
    assert np.array_equal(points.get_ydata(), binary["test_score"])
    assert line_with(ax, "mean").get_ydata()[0] == binary.mean
    assert label_with(ax, "standard error") == f"± {binary.std_error:.2g}, standard error"


def test_a_level_gives_an_interval_by_students_t(binary):
    band = binary.plot("scores", level=0.95).patches[0].get_extents()
    ax = plt.gca()
    low, high = ax.transData.inverted().transform(band.get_points())[:, 1]
    assert (high - low) / 2 == pytest.approx(2.2621571628 * binary.std_error, rel=1e-6)
    with pytest.raises(ValueError, match="level must be between 0 and 1, got 95"):
        binary.plot("scores", level=95)


def test_many_folds_are_counted(cancer):
    ax = onefold.cross_validate(GaussianNB(), *cancer, cv="loo").plot("scores")
    heights = [bar.get_height() for bar in ax.patches if bar.get_height() > 1]
    assert sum(heights) == len(cancer[1])
    assert len(heights) == 2
    assert "569" in ax.get_ylabel()


def test_2000_distinct_scores_become_a_histogram():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 3))
    result = onefold.cross_validate(
        Ridge(), X, X[:, 0] + rng.normal(size=2000), cv="loo", scoring="neg_mean_squared_error"
    )
    ax = result.plot("scores")
    assert 10 < len(ax.patches) < 200


def test_a_metric_of_several_is_chosen(cancer):
    metrics = ["accuracy", "roc_auc"]
    result = onefold.cross_validate(
        GaussianNB(), *cancer, cv=5, scoring=metrics, return_train_score=True
    )
    assert result.plot("scores").get_ylabel() == "accuracy"
    ax = result.plot("scores", metric="roc_auc")
    assert ax.get_ylabel() == "roc_auc"
    assert np.array_equal(line_with(ax, "training").get_ydata(), result["train_roc_auc"])
    with pytest.raises(
        ValueError, match=r"metric must be one of \['accuracy', 'roc_auc'\], got 'f1'"
    ):
        result.plot("scores", metric="f1")


def test_partitions_of_repeated_k_fold_have_their_means():
    X, y = load_diabetes(return_X_y=True)
    cv = RepeatedKFold(n_splits=5, n_repeats=3, random_state=0)
    result = onefold.cross_validate(Ridge(), X, y, cv=cv)
    ax = result.plot("scores")
    drawn = [lines.get_segments()[0][0, 1] for lines in ax.collections]
    assert drawn == pytest.approx(result.partition_means)
    assert ax.get_xlabel() == "split"


def test_a_fold_without_a_score_leaves_out_the_mean(cancer):
    X, y = cancer
    folds = np.r_[np.zeros(50), 1 + np.arange(len(y) - 50) % 4].astype(int)
    y = np.r_[np.zeros(50), y[50:]].astype(int)
    with pytest.warns(match="Only one class"):
        result = onefold.cross_validate(GaussianNB(), X, y, cv=folds, scoring="roc_auc")
    ax = result.plot("scores")
    assert labels_of(ax) == [f"pooled {result.pooled:.4g}", "1 fold without a score: no mean"]


# Curves


def test_the_pooled_roc_curve_is_that_of_all_held_out_answers(binary, cancer):
    line = line_with(binary.plot("roc"), "pooled")
    scores = binary.probabilities[:, 1]
    x, y, _ = roc_curve(cancer[1], scores)
    assert np.array_equal(line.get_xdata(), x)
    assert np.array_equal(line.get_ydata(), y)
    assert line.get_label() == f"pooled (AUC = {roc_auc_score(cancer[1], scores):.3f})"


def test_the_folds_have_curves_of_their_own(binary, cancer):
    ax = binary.plot("roc")
    aucs = [
        roc_auc_score(cancer[1][own["rows"]], own["predict_proba"][:, 1])
        for own in map(binary.fold_answers, range(10))
    ]
    expected = f"10 folds (AUC = {np.mean(aucs):.3f} ± {np.std(aucs, ddof=1):.3f})"
    assert label_with(ax, "folds") == expected
    assert len(ax.lines) == 12
    assert len(binary.plot("roc", folds=False, chance=False).lines) == 1


def test_leave_one_out_has_the_pooled_curve_only(cancer):
    ax = onefold.cross_validate(GaussianNB(), *cancer, cv="loo").plot("roc")
    assert [label.split(" (")[0] for label in labels_of(ax)] == ["chance", "pooled"]


def test_labels_of_curves_name_the_positive_class(cancer):
    X, y = cancer
    result = onefold.cross_validate(GaussianNB(), X, np.array(["no", "yes"])[y], cv=5)
    assert result.plot("roc").get_xlabel() == "False Positive Rate (Positive label: yes)"
    ax = result.plot("precision_recall", pos_label="no")
    assert ax.get_ylabel() == "Precision (Positive label: no)"
    with pytest.raises(ValueError, match=r"pos_label must be one of \['no', 'yes'\], got 'maybe'"):
        result.plot("roc", pos_label="maybe")


def test_the_decision_of_the_first_class_is_turned_round(tree, cancer):
    label = label_with(tree.plot("roc", pos_label=0), "pooled")
    assert label == f"pooled (AUC = {roc_auc_score(cancer[1], tree.decision_values):.3f})"
    with pytest.raises(ValueError, match=r"response must be one of \['decision_function'\]"):
        tree.plot("roc", response="predict_proba")


@pytest.mark.parametrize("kind", ["roc", "precision_recall", "calibration"])
def test_each_of_several_classes_has_a_curve(digits, kind):
    ax = digits.plot(kind)
    assert sum(label.startswith("class ") for label in labels_of(ax)) == 10
    assert ax.get_xlabel().endswith("(one-vs-rest)")
    one = digits.plot(kind, pos_label=3)
    assert one.get_xlabel().endswith("(Positive label: 3)")
    assert label_with(one, "pooled")


def test_many_classes_are_summed_up():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(15), 20)
    X = y[:, None] + rng.normal(size=(300, 2))
    ax = onefold.cross_validate(GaussianNB(), X, y, cv=5).plot("roc")
    assert label_with(ax, "15 classes (AUC ")


def test_a_fold_without_one_of_the_classes_has_no_curve():
    X, y = load_iris(return_X_y=True)
    result = onefold.cross_validate(GaussianNB(), X, y, cv=KFold(5))
    ax = result.plot("precision_recall", pos_label=1)
    assert label_with(ax, "of 5 folds").startswith("2 of 5 folds")


def test_calibration_bins_are_scikit_learns(cancer):
    from sklearn.calibration import calibration_curve

    X, y = cancer
    result = onefold.cross_validate(LogisticRegression(), X, y, cv=5, scoring="neg_log_loss")
    line = line_with(result.plot("calibration", n_bins=8, strategy="quantile"), "pooled")
    share, predicted = calibration_curve(
        y, result.probabilities[:, 1], n_bins=8, strategy="quantile"
    )
    np.testing.assert_allclose(line.get_xdata(), predicted, rtol=1e-12)
    np.testing.assert_allclose(line.get_ydata(), share, rtol=1e-12)


# Predictions


def test_the_confusion_matrix_is_that_of_all_predictions_or_of_a_fold(digits):
    y = load_digits().target
    image = digits.plot("confusion_matrix").images[0]
    assert np.array_equal(image.get_array(), confusion_matrix(y, digits.predictions))
    own = digits.fold_answers(2)
    image = digits.plot("confusion_matrix", fold=2, normalize="true").images[0]
    expected = confusion_matrix(y[own["rows"]], own["predict"], normalize="true")
    assert np.allclose(image.get_array(), expected)
    with pytest.raises(ValueError, match="fold=5: there are 5 folds, from 0"):
        digits.plot("confusion_matrix", fold=5)
    with pytest.raises(ValueError, match="normalize must be None, 'true', 'pred' or 'all'"):
        digits.plot("confusion_matrix", normalize=True)


def test_residuals_are_held_out(regression):
    y = load_diabetes().target
    points = regression.plot("residuals").collections[0].get_offsets()
    rows = regression.folds.rows
    assert np.allclose(points[:, 0], regression.predictions[rows])
    assert np.allclose(points[:, 1], (y - regression.predictions)[rows])
    one = regression.plot("actual_vs_predicted", fold=1).collections[0].get_offsets()
    assert np.allclose(one[:, 1], y[regression.fold_answers(1)["rows"]])


def test_many_residuals_are_a_sample(regression):
    ax = regression.plot("residuals", subsample=100)
    assert len(ax.collections[0].get_offsets()) == 100
    assert ax.get_title() == "100 of 442 samples, at random"
    with pytest.raises(ValueError, match="subsample must be a positive number of samples, got 0"):
        regression.plot("residuals", subsample=0)


def test_an_output_of_several_is_chosen():
    X, y = load_diabetes(return_X_y=True)
    result = onefold.cross_validate(Ridge(), X, np.c_[y, 100 * X[:, 0]], cv=10)
    points = result.plot("residuals", output=1).collections[0].get_offsets()
    assert np.allclose(points[:, 0], result.predictions[result.folds.rows, 1])
    assert result.plot("residuals").get_title() == "output 0 of 2"
    with pytest.raises(ValueError, match="output must be from 0 to 1, got 2"):
        result.plot("residuals", output=2)


# Samples


def test_losses_are_drawn_with_the_interval_of_their_mean(regression):
    ax = regression.plot("losses", n_labels=1)
    points = ax.lines[0]
    assert np.array_equal(points.get_ydata(), regression.losses[points.get_xdata().astype(int)])
    found = regression.interval(level=0.95)
    assert label_with(ax, "interval") == f"its 95 % interval, {found.low:.4g} to {found.high:.4g}"
    [worst] = ax.texts
    assert worst.get_text() == str(regression.losses.argmax())


def test_a_classifier_has_its_finest_loss(binary, tree):
    assert binary.plot("losses").get_ylabel() == "log loss"
    assert tree.plot("losses").get_ylabel() == "hinge loss"
    ax = binary.plot("losses", loss="zero-one")
    assert label_with(ax, "wrong") == f"{int(binary.losses.sum())} of 569 wrong"
    with pytest.raises(ValueError, match="loss must be one of"):
        binary.plot("losses", loss="square")


def test_influence_ranks_the_samples(regression):
    ax = regression.plot("influence", n_labels=2)
    ranked = np.sort(regression.losses)[::-1]
    assert np.array_equal(ax.lines[0].get_ydata(), ranked)
    n_half = int(np.searchsorted(np.cumsum(ranked), ranked.sum() / 2)) + 1
    assert label_with(ax, "half").startswith(f"{n_half} of 442 samples")
    assert ranked[:n_half].sum() >= ranked.sum() / 2 > ranked[: n_half - 1].sum()


def test_influence_of_diagnostics_is_cooks_distance(regression):
    X, y = load_diabetes(return_X_y=True)
    found = onefold.diagnostics(Ridge(0.1), X, y)
    points = regression.plot("influence", diagnostics=found).lines[0]
    assert np.array_equal(points.get_xdata(), found.leverages)
    assert np.array_equal(points.get_ydata(), found.cooks_distance)
    few = onefold.diagnostics(Ridge(0.1), X[:50], y[:50])
    with pytest.raises(ValueError, match="those of the 442 samples of this result"):
        regression.plot("influence", diagnostics=few)


# Tree and cost


@pytest.mark.parametrize("n_folds", [2, 3, 5, 8, 13])
def test_the_nodes_are_those_of_the_reference(n_folds):
    from reference.tree import tree_models

    X, y = np.arange(2.0 * n_folds)[:, None], np.arange(2 * n_folds) % 2
    folds = onefold.Folds.contiguous(2 * n_folds, n_folds)
    n_models = sum(1 for _ in tree_models(GaussianNB(), X, y, folds, classes=[0, 1]))
    nodes = list(tree_nodes(n_folds))
    leaves = [node for node in nodes if node.first == node.last]
    assert len(leaves) == n_models == n_folds
    assert len(nodes) == 2 * n_folds - 1
    fed = sum(node.learns[1] - node.learns[0] + 1 for node in nodes if node.learns)
    assert 2 * fed == rows_fed_by_tree(2 * n_folds, n_folds)


def test_the_tree_names_every_span(tree):
    texts = [text.get_text() for text in tree.plot("tree").texts]
    assert texts.count("1–8") == 1
    assert all(str(leaf) in texts for leaf in range(1, 9))
    assert "+5–8" in texts


def test_the_tree_is_for_few_folds(cancer):
    result = onefold.cross_validate(Pegasos(), *cancer, cv=33)
    with pytest.raises(ValueError, match="up to 32 folds, and there are 33"):
        result.plot("tree")


@pytest.mark.parametrize("n_folds", [2, 5, 8, 10, 100, 569])
def test_the_count_of_the_tree_is_what_the_engine_counts(cancer, n_folds):
    result = onefold.cross_validate(
        Pegasos(),
        *cancer,
        cv=KFold(n_folds),
        engine_options={"placement": "given", "order": "fixed"},
    )
    assert rows_fed_by_tree(569, n_folds) == result.cost["rows_fed"]


def test_the_cost_is_a_point_among_curves(tree):
    ax = tree.plot("cost")
    point = line_with(ax, "this result")
    assert (point.get_xdata()[0], point.get_ydata()[0]) == (8, tree.cost["rows_fed"])
    exact, bound = line_with(ax, "exactly"), line_with(ax, "bound")
    refits = line_with(ax, "refits")
    k = exact.get_xdata()
    assert np.array_equal(refits.get_ydata(), 569 * (k - 1))
    assert np.array_equal(bound.get_ydata(), 569 * np.log2(2 * k))
    assert (exact.get_ydata() <= bound.get_ydata()).all()


# Test sets that are no partition, other estimators, comparisons


@pytest.mark.parametrize("cv", [TimeSeriesSplit(4), onefold.monte_carlo(6, test_size=0.3)])
def test_test_sets_that_are_no_partition_can_be_plotted(cancer, cv):
    result = onefold.cross_validate(GaussianNB(), *cancer, cv=cv, engine="refit")
    for kind in ("scores", "roc", "calibration", "confusion_matrix", "losses", "influence"):
        assert result.plot(kind).has_data()
    assert "fits" in result.plot("cost").get_xlabel()
    with pytest.raises(ValueError, match="it is for engine='tree'"):
        result.plot("tree")


def test_a_density_has_scores_and_losses():
    result = onefold.cross_validate(GaussianDensity(), load_iris().data, cv=5)
    assert result.plot("losses").get_ylabel() == "negative log density"
    with pytest.raises(ValueError, match="there are no targets"):
        result.plot("roc")


def test_refitted_estimators_and_loaded_results_are_plotted_alike(regression):
    X, y = load_diabetes(return_X_y=True)
    forest = onefold.cross_validate(RandomForestRegressor(3, random_state=0), X, y, cv=3)
    assert forest.plot("residuals").has_data()
    again = onefold.CVResult.from_json(regression.to_json())
    first, second = (own.plot("residuals").collections[0] for own in (regression, again))
    assert np.array_equal(first.get_offsets(), second.get_offsets())


def test_a_comparison_of_two_results_is_a_forest_plot(regression):
    X, y = load_diabetes(return_X_y=True)
    other = onefold.cross_validate(Ridge(10), X, y, cv=regression.folds)
    comparison = onefold.compare(regression, other)
    ax = plot_comparison(comparison)
    assert len(ax.get_yticklabels()) == 2
    with pytest.raises(ValueError, match="top must be a positive number of candidates, got 0"):
        plot_comparison(comparison, top=0)
