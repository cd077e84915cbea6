"""Cross-validation on a Dask cluster: chunks stay where they are, models are sent.

`cross_validate`, `cross_val_score` and `GridSearchCV` take dask arrays, dask data frames, lists of
delayed partitions, or lists of LIBSVM files that the workers read themselves. TreeCV runs over the
chunks (section 4.1 of Joulani, György and Szepesvári, IJCAI 2015): a model is sent to the worker
that has the next rows, never the rows to the model. Needs ``pip install onefold[dask]``.
"""

import sys

from ._chunks import ChunkError
from ._search import GridSearchCV
from ._session import register_sizes
from ._validation import cross_val_score, cross_validate

__all__ = [
    "ChunkError",
    "GridSearchCV",
    "cross_val_score",
    "cross_validate",
]

if "dask" in sys.modules:  # a worker, which measures what it holds
    register_sizes()
