"""scikit-learn's tests of calibration, on our class."""

from peers import adopt

from onefold import CalibratedClassifierCV

globals().update(
    adopt(
        "sklearn.tests.test_calibration",
        {"sklearn.calibration": {"CalibratedClassifierCV": CalibratedClassifierCV}},
    )
)
