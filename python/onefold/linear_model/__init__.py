"""Linear models that choose their penalty by cross-validation, as scikit-learn's do.

>>> from onefold.linear_model import LogisticRegressionCV
>>> LogisticRegressionCV(Cs=5)
LogisticRegressionCV(Cs=5)
"""

from ._elastic_net_cv import ElasticNetCV, LassoCV
from ._logistic_cv import LogisticRegressionCV

__all__ = ["ElasticNetCV", "LassoCV", "LogisticRegressionCV"]
