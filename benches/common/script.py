"""The command line that peer scripts of several parts have in common."""

import argparse
import warnings

from .report import Figures, add_options, machine, write_figures

__all__ = ["run"]


def run(parts, description, *, title, result, note=""):
    """Run the parts that the command line names, and write the table on request.

    Parameters
    ----------
    parts : dict of functions
        Called with the figures, whether to be quick, and whether to time the peers.
    description : str
        Of the script.
    title, result : str
        Heading and file of the table.
    note : str
        What stands above the table: how it is measured.
    """
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", choices=parts, default=list(parts))
    parser.add_argument("--quick", action="store_true", help="fewer rounds, smaller data")
    parser.add_argument("--write", action="store_true", help=f"write benches/results/{result}")
    add_options(parser)
    arguments = parser.parse_args()
    # The peers' warnings are not what is measured here.
    warnings.simplefilter("ignore")
    described = machine()
    print(described)
    figures = Figures()
    for name in arguments.only:
        parts[name](figures, arguments.quick, not arguments.without_peers)
    print(figures.summary())
    figures.save(arguments.json)
    if arguments.write:
        above = f"{described}.\n\n{note}" if note else described
        write_figures(result, title, above.removesuffix("."), figures)
