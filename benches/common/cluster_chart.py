"""The figure of simulated clusters: how much faster than one core they are, and from when on."""

from cluster_simulator import ClusterCosts, simulate

from .report import RESULTS

__all__ = ["COSTS", "draw"]

COSTS = {
    "tree, 0.1 µs per row": ("tree", 1e-7, "#0072B2"),
    "tree, 1 µs per row": ("tree", 1e-6, "#D55E00"),
    "merge, 1 µs per row": ("merge", 1e-6, "#009E73"),
}
MACHINES = (2, 4, 10, 30, 100, 300, 1000, 3000, 10_000)
ROWS_PER_MACHINE = 10_000_000
ROWS = tuple(int(10 ** (at / 2)) for at in range(8, 21))
N_MACHINES = 16


def draw():
    """Write the figure beside the results."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 4.0), layout="constrained")
    for name, (engine, update, color) in COSTS.items():
        costs = ClusterCosts(update=update, evaluate=update, model_bytes=702, row_bytes=436)

        def speedup(n_rows, n_workers, costs=costs, engine=engine):
            return simulate(costs, n_rows=n_rows, n_workers=n_workers, engine=engine).speedup

        of_machines = [speedup(ROWS_PER_MACHINE * own, own) for own in MACHINES]
        left.plot(MACHINES, of_machines, "o-", color=color, label=name)
        of_rows = [speedup(own, N_MACHINES) for own in ROWS]
        right.plot(ROWS, of_rows, "o-", color=color, label=name)
    grey = {"ls": ":", "color": "#767676"}
    left.plot(MACHINES, MACHINES, label="as many times as machines", **grey)
    right.axhline(1, **grey)
    right.annotate("one core", (ROWS[-1], 1), (0, 4), textcoords="offset points", ha="right")
    left.set(xlabel="machines, with 10 million rows each", title="What it is limited to")
    right.set(
        xlabel=f"rows, on {N_MACHINES} machines", title="From which size it pays", ylim=(3e-2, 100)
    )
    for axes in (left, right):
        axes.set(xscale="log", yscale="log", ylabel="times faster than one core")
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    left.legend(frameon=False, loc="upper left")
    RESULTS.mkdir(exist_ok=True)
    figure.savefig(RESULTS / "cluster.png", dpi=110)
    print("wrote benches/results/cluster.png")


if __name__ == "__main__":
    draw()
