"""A simulator of clusters: how long cross-validation takes on machines that one does not have.

It runs the schedules of `onefold.distributed` against simulated clocks of the client, the
scheduler, the workers and the network. Add the folder ``benches`` to ``PYTHONPATH`` to import it.
"""

from .costs import ClusterCosts
from .simulation import Simulation, simulate

__all__ = ["ClusterCosts", "Simulation", "simulate"]
