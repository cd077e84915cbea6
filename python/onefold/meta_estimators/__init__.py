"""scikit-learn's meta-estimators that cross-validate inside, with our engines doing it.

Each class is scikit-learn's of the same name: its parameters, attributes and methods. Only held-out
answers come from `onefold.cross_val_predict`, and the last fits of support vector machines from our
solver; so they are equal where the engine is exact, and to the solver's tolerance elsewhere.
"""

from ._calibration import CalibratedClassifierCV
from ._stacking import StackingClassifier, StackingRegressor
from ._threshold import TunedThresholdClassifierCV

__all__ = [
    "CalibratedClassifierCV",
    "StackingClassifier",
    "StackingRegressor",
    "TunedThresholdClassifierCV",
]
