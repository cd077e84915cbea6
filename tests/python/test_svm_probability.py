"""Support vector machines with probabilities, which only `predict_proba` of a fit needs."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from svm_cases import wine

import onefold

pytestmark = pytest.mark.filterwarnings("ignore:The `probability` parameter was deprecated")


@pytest.mark.parametrize("n_classes", [2, 3])
def test_machines_with_probabilities_are_served_where_these_are_not_read(n_classes):
    X, y = wine()
    X, y = X[y < n_classes], y[y < n_classes]
    calibrated, plain = (
        make_pipeline(StandardScaler(), SVC(tol=1e-8, random_state=0, **probability))
        for probability in ({"probability": True}, {})
    )
    scoring = ["accuracy", "roc_auc"] if n_classes == 2 else "accuracy"
    result = onefold.cross_validate(calibrated, X, y, scoring=scoring)
    other = onefold.cross_validate(plain, X, y, scoring=scoring)
    assert result.engine == other.engine == "seeded"
    np.testing.assert_array_equal(result.predictions, other.predictions)
    np.testing.assert_array_equal(result.decision_values, other.decision_values)
    refits = onefold.cross_validate(calibrated, X, y, scoring=scoring, engine="refit")
    np.testing.assert_array_equal(result.predictions, refits.predictions)
    np.testing.assert_allclose(result.decision_values, refits.decision_values, atol=1e-6)
    # LIBSVM's own solutions do not depend on the calibration either.
    without = onefold.cross_validate(plain, X, y, scoring=scoring, engine="refit")
    np.testing.assert_array_equal(refits.decision_values, without.decision_values)
    # Probabilities are those of the fitted estimator.
    with pytest.warns(onefold.RefitWarning, match="calibrated by folds of its own"):
        log_loss = onefold.cross_validate(calibrated, X, y, scoring="neg_log_loss")
    assert log_loss.engine == "refit"
    expected = cross_val_score(calibrated, X, y, scoring="neg_log_loss")
    np.testing.assert_array_equal(log_loss["test_score"], expected)


def test_the_best_machine_of_a_search_has_its_probabilities():
    X, y = wine()
    machine = SVC(probability=True, random_state=0)
    search = onefold.GridSearchCV(machine, {"C": [1.0, 10.0]}, cv=3).fit(X, y)
    assert set(search.result_.engines) == {"seeded"}
    best = clone(machine).set_params(**search.best_params_).fit(X, y)
    np.testing.assert_array_equal(search.predict_proba(X), best.predict_proba(X))
    with pytest.warns(onefold.RefitWarning, match="it gives no predict_proba"):
        asked = onefold.cross_val_predict(machine, X, y, cv=3, method="predict_proba")
    expected = cross_val_predict(machine, X, y, cv=3, method="predict_proba")
    np.testing.assert_array_equal(asked, expected)
