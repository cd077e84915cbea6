"""Clustering: the loss of a held-out row is its squared distance from the nearest centre."""

from __future__ import annotations

from ._base import Floats, NativeClusterer, native

__all__ = ["OnlineKMeans"]


@native("online_kmeans")
class OnlineKMeans(NativeClusterer):
    """MacQueen's k-means, one row at a time.

    The first distinct rows are the first centres; then a row is assigned to its nearest centre,
    which moves to the mean of its rows.

    Parameters
    ----------
    n_clusters : int, default=8

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        NaN where there were fewer distinct rows than clusters.
    labels_ : ndarray of shape (n_samples,)
        Nearest centres of the rows of the last ``fit``.
    n_features_in_ : int

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import onefold
    >>> from onefold.learners import OnlineKMeans
    >>> X, _ = load_iris(return_X_y=True)
    >>> result = onefold.cross_validate(
    ...     OnlineKMeans(3), X, cv="loo", engine_options={"order": "random"}
    ... )
    >>> result.engine, result.loss
    ('tree', 'squared distance')
    """

    _is_order_sensitive = True

    n_clusters: int = 8

    @property
    def cluster_centers_(self) -> Floats:
        """The centres: means of the rows assigned to them."""
        return self._fitted("cluster_centers_")
