"""The versions that what is compared with depends on."""

import sklearn

SKLEARN = tuple(int(part) for part in sklearn.__version__.split(".")[:2])

PIPELINES_ROUTE_SCORES = SKLEARN >= (1, 8)
"""Whether a pipeline hands on what its score is passed; before, scikit-learn raised an error."""

SEARCHES_WEIGH_SCORES = SKLEARN >= (1, 7)
"""Whether a search passes its sample_weight to scorers too, without metadata routing."""
