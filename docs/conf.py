"""Configuration of the documentation: ``make docs``."""

import sys
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

import onefold

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "onefold"
author = "the authors of onefold"
copyright = "the authors of onefold"
release = version = onefold.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_design",
    "sphinx_copybutton",
    "bench_tables",
    "engine_tables",
    "example_gallery",
    "line_breaks",
    "mathml",
    "offline",
    "page_plots",
]
exclude_patterns = ["_build", "_ext", "_templates"]
templates_path = ["_templates"]
default_role = "py:obj"
smartquotes = False

myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

html_theme = "furo"
html_title = "onefold"
html_static_path = ["_static"]
html_css_files = ["onefold.css"]
html_math_renderer = "mathml"
html_show_sphinx = False
html_copy_source = False
html_theme_options = {"footer_icons": []}
pygments_style = "friendly"
pygments_dark_style = "github-dark"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True


def _skip(_app: Any, _what: str, name: str, _own: Any, skip: bool, _options: Any) -> bool:
    """Leave out what scikit-learn generates for every estimator; its text refers to its pages."""
    return skip or (name.startswith("set_") and name.endswith("_request"))


def setup(app: Sphinx) -> None:
    """Connect the handler."""
    app.connect("autodoc-skip-member", _skip)
