"""scikit-learn's tests of tuned thresholds, on our class."""

from peers import adopt

from onefold import TunedThresholdClassifierCV

globals().update(
    adopt(
        "sklearn.model_selection.tests.test_classification_threshold",
        {"sklearn.model_selection": {"TunedThresholdClassifierCV": TunedThresholdClassifierCV}},
    )
)
