"""Estimators of every engine with drawn parameters, and the promise of each.

Iterative solvers get tolerances that leave rounding only: the hunt compares optima, not the places
where two solvers stop.
"""

from hypothesis import strategies as st
from sklearn.discriminant_analysis import (
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
)
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import (
    BaggingClassifier,
    BaggingRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import (
    ElasticNet,
    GammaRegressor,
    Lasso,
    LinearRegression,
    LogisticRegression,
    PoissonRegressor,
    Ridge,
    RidgeClassifier,
    SGDClassifier,
    SGDRegressor,
    TweedieRegressor,
)
from sklearn.naive_bayes import BernoulliNB, ComplementNB, GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor, NearestCentroid
from sklearn.svm import SVC, SVR, LinearSVC, LinearSVR
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from onefold import learners

CLASSIFICATION = ["binary", "three classes", "strings", "few positives", "booleans"]
REGRESSION = ["numbers", "numbers", "whole numbers", "far numbers", "two outputs", "constant"]
NONNEGATIVE = {"MultinomialNB", "ComplementNB"}

flags = st.booleans()
penalties = st.sampled_from([1e-6, 1e-3, 0.1, 1.0, 10.0, 1e4])
costs = st.sampled_from([1e-3, 0.1, 1.0, 10.0, 1000.0])
balance = st.sampled_from([None, None, "balanced"])
kernels = st.sampled_from(["linear", "rbf", "rbf", "poly", "sigmoid"])
widths = st.sampled_from(["scale", "auto", 0.1, 1.0])


def svms(kind, **more):
    """Support vector machines with a tolerance that both solvers reach.

    Kernel values are of single precision in both: below it, steps follow their rounding.
    """
    return st.builds(
        kind,
        C=st.sampled_from([0.1, 1.0, 10.0, 100.0]),
        kernel=kernels,
        gamma=widths,
        tol=st.just(1e-6),
        max_iter=st.just(50_000),
        **more,
    )


def neighbors(kind):
    return st.builds(
        kind,
        n_neighbors=st.sampled_from([1, 2, 5]),
        weights=st.sampled_from(["uniform", "distance"]),
        algorithm=st.sampled_from(["auto", "brute", "kd_tree"]),
        metric=st.sampled_from(["minkowski", "manhattan", "cosine", "chebyshev"]),
    )


def ensembles(kind, **more):
    return st.builds(kind, n_estimators=st.integers(1, 5), random_state=st.integers(0, 3), **more)


TIGHT = {"tol": st.just(1e-12), "max_iter": st.just(20_000)}
FAMILIES = {
    "least squares": (
        "regression",
        st.one_of(
            st.builds(LinearRegression, fit_intercept=flags, tol=st.just(1e-15)),
            st.builds(Ridge, alpha=penalties, fit_intercept=flags, tol=st.just(1e-15)),
        ),
    ),
    "least squares of classes": (
        "classification",
        st.builds(
            RidgeClassifier,
            alpha=penalties,
            fit_intercept=flags,
            class_weight=balance,
            tol=st.just(1e-15),
        ),
    ),
    "kernels": (
        "regression",
        st.one_of(
            st.builds(
                KernelRidge,
                alpha=st.sampled_from([1e-3, 1.0]),
                kernel=st.sampled_from(["linear", "rbf", "poly", "laplacian"]),
                gamma=st.sampled_from([None, 0.1]),
            ),
            st.builds(
                GaussianProcessRegressor,
                kernel=st.sampled_from([RBF(), RBF(3.0) + WhiteKernel(0.5)]),
                alpha=st.sampled_from([1e-6, 0.1]),
                optimizer=st.none(),
                normalize_y=flags,
            ),
        ),
    ),
    "logistic": (
        "classification",
        st.builds(
            LogisticRegression,
            C=costs,
            fit_intercept=flags,
            class_weight=balance,
            solver=st.sampled_from(["lbfgs", "newton-cholesky"]),
            **TIGHT,
        ),
    ),
    "generalised linear": (
        "regression",
        st.one_of(
            st.builds(
                PoissonRegressor,
                alpha=penalties,
                fit_intercept=flags,
                solver=st.sampled_from(["lbfgs", "newton-cholesky"]),
                **TIGHT,
            ),
            st.builds(GammaRegressor, alpha=penalties, fit_intercept=flags, **TIGHT),
            st.builds(
                TweedieRegressor,
                power=st.sampled_from([0, 1.5, 3]),
                alpha=penalties,
                link=st.sampled_from(["auto", "log"]),
                **TIGHT,
            ),
        ),
    ),
    "linear machines": (
        "classification",
        st.builds(
            LinearSVC,
            C=costs,
            dual=st.just(False),
            fit_intercept=flags,
            class_weight=balance,
            tol=st.just(1e-10),
            max_iter=st.just(2_000),
        ),
    ),
    "linear machines of numbers": (
        "regression",
        st.builds(
            LinearSVR,
            C=costs,
            epsilon=st.sampled_from([0.0, 0.3]),
            loss=st.just("squared_epsilon_insensitive"),
            dual=st.just(False),
            fit_intercept=flags,
            tol=st.just(1e-10),
            max_iter=st.just(2_000),
        ),
    ),
    "path": (
        "regression",
        st.one_of(
            st.builds(
                Lasso,
                alpha=st.sampled_from([1e-3, 0.05, 0.5, 100.0]),
                fit_intercept=flags,
                positive=st.sampled_from([False, False, True]),
                **TIGHT,
            ),
            st.builds(
                ElasticNet,
                alpha=st.sampled_from([1e-3, 0.05, 0.5, 100.0]),
                l1_ratio=st.sampled_from([0.1, 0.5, 1.0]),
                fit_intercept=flags,
                **TIGHT,
            ),
        ),
    ),
    "machines": ("classification", svms(SVC, class_weight=balance)),
    "machines of numbers": ("regression", svms(SVR, epsilon=st.sampled_from([0.01, 0.3]))),
    "neighbors": ("classification", neighbors(KNeighborsClassifier)),
    "neighbors of numbers": ("regression", neighbors(KNeighborsRegressor)),
    "naive Bayes": (
        "classification",
        st.one_of(
            st.builds(GaussianNB),
            st.builds(MultinomialNB, alpha=st.sampled_from([0.1, 1.0])),
            st.builds(BernoulliNB, alpha=st.sampled_from([0.1, 1.0]), fit_prior=flags),
            st.builds(ComplementNB, norm=flags),
            st.builds(learners.GaussianNB),
            st.builds(learners.MultinomialNB),
            st.builds(learners.BernoulliNB),
        ),
    ),
    "discriminants": (
        "classification",
        st.one_of(
            st.builds(
                LinearDiscriminantAnalysis,
                solver=st.sampled_from(["svd", "lsqr"]),
            ),
            st.builds(
                LinearDiscriminantAnalysis,
                solver=st.just("lsqr"),
                shrinkage=st.sampled_from([0.1, 0.9]),
            ),
            st.builds(QuadraticDiscriminantAnalysis, reg_param=st.sampled_from([0.0, 0.1])),
            st.builds(NearestCentroid, metric=st.sampled_from(["euclidean", "manhattan"])),
        ),
    ),
    "incremental": (
        "classification",
        st.sampled_from([learners.Pegasos(0.1), learners.Perceptron(), learners.LogisticSGD()]),
    ),
    "incremental of numbers": (
        "regression",
        st.sampled_from(
            [
                learners.LeastSquaresSGD(),
                learners.RidgeStatistics(),
                learners.RecursiveLeastSquares(),
            ]
        ),
    ),
    "trees": (
        "classification",
        st.one_of(
            st.builds(DecisionTreeClassifier, max_depth=st.integers(1, 3), random_state=st.just(0)),
            st.builds(DummyClassifier, strategy=st.sampled_from(["prior", "most_frequent"])),
        ),
    ),
    "forests": (
        "classification",
        st.one_of(
            st.builds(
                DecisionTreeClassifier,
                criterion=st.sampled_from(["gini", "entropy"]),
                max_depth=st.sampled_from([None, 2]),
                min_samples_leaf=st.sampled_from([1, 3, 0.1]),
                max_features=st.sampled_from([None, "sqrt", 2]),
                max_leaf_nodes=st.sampled_from([None, None, 5]),
                min_impurity_decrease=st.sampled_from([0.0, 0.01]),
                class_weight=balance,
                random_state=st.integers(0, 3),
            ),
            st.builds(
                RandomForestClassifier,
                n_estimators=st.integers(1, 5),
                max_features=st.sampled_from(["sqrt", None, 1]),
                max_depth=st.sampled_from([None, 3]),
                bootstrap=flags,
                max_samples=st.none(),
                class_weight=st.sampled_from([None, "balanced", "balanced_subsample"]),
                random_state=st.integers(0, 3),
            ),
        ),
    ),
    "forests of numbers": (
        "regression",
        st.one_of(
            ensembles(RandomForestRegressor, criterion=st.just("squared_error")),
            ensembles(ExtraTreesRegressor, max_features=st.sampled_from([1.0, "sqrt"])),
        ),
    ),
    "bags": (
        "classification",
        st.one_of(
            ensembles(ExtraTreesClassifier, max_depth=st.sampled_from([None, 3])),
            ensembles(BaggingClassifier, max_samples=st.sampled_from([1.0, 0.5])),
        ),
    ),
    "bags of numbers": ("regression", ensembles(BaggingRegressor, bootstrap=flags)),
    "bags on request": (
        "classification",
        st.one_of(
            ensembles(RandomForestClassifier, max_depth=st.sampled_from([None, 3])),
            ensembles(BaggingClassifier, bootstrap=st.just(True)),
        ),
    ),
    "partial fits": (
        "classification",
        st.builds(
            SGDClassifier,
            loss=st.sampled_from(["hinge", "log_loss"]),
            max_iter=st.just(5),
            tol=st.none(),
            random_state=st.integers(0, 3),
        ),
    ),
    "partial fits of numbers": (
        "regression",
        st.builds(SGDRegressor, max_iter=st.just(5), tol=st.none(), random_state=st.just(0)),
    ),
    "trees of numbers": (
        "regression",
        st.one_of(
            st.builds(DecisionTreeRegressor, max_depth=st.integers(1, 3), random_state=st.just(0)),
            st.builds(DummyRegressor, strategy=st.sampled_from(["mean", "median"])),
        ),
    ),
}
