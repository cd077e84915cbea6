"""Native incremental learners: scikit-learn estimators that TreeCV walks without Python."""

from .linear import Pegasos

__all__ = ["Pegasos"]
