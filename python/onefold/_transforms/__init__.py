"""Transformers of a pipeline whose expensive part is shared by all folds.

Tokens of texts, codes of categories and order statistics depend on the rows, not on the folds. They
are computed once; each fold then does the rest of the transformer's ``fit`` on its training rows.
`share` has the table of classes.
"""

from .contract import FoldRows, Shared
from .table import may_share, reads_texts, reads_texts_in_part, share, share_steps

__all__ = [
    "FoldRows",
    "Shared",
    "may_share",
    "reads_texts",
    "reads_texts_in_part",
    "share",
    "share_steps",
]
