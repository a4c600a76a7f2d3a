"""The site: Sphinx on the pages of this folder, without network; every block of Python is run."""

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
BUILD = HERE.parent / "build" / "docs"
sys.path.insert(0, str(HERE / "_ext"))

import lineara  # noqa: E402  (the path is set above)

project = "Lineara"
author = "The Lineara authors"
copyright = "The Lineara authors"
version = release = lineara.__version__

extensions = [
    "myst_nb",  # Markdown, and pages whose code is run
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "mathml",
    "pages",
    "plain_docstrings",
]
root_doc = "index"
templates_path = ["_templates"]
exclude_patterns = ["_ext", "_static", "_templates", "gallery/**/*.ipynb", "gallery/**/*.zip"]
nitpicky = False
keep_warnings = False
suppress_warnings = ["config.cache"]  # functions among the settings of the gallery

# --- pages -------------------------------------------------------------------------------------

myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 4
default_role = "code"

# --- code that is run --------------------------------------------------------------------------

nb_execution_mode = "cache"
nb_execution_cache_path = str(BUILD / "cells")
nb_execution_raise_on_error = True
nb_execution_show_tb = True
nb_execution_timeout = 300
nb_execution_in_temp = True
nb_merge_streams = True

IPYTHON = BUILD / "ipython"  # the settings of the kernels, and what they write
(IPYTHON / "profile_default").mkdir(parents=True, exist_ok=True)
(IPYTHON / "profile_default" / "ipython_config.py").write_text(
    "c.InteractiveShell.xmode = 'Minimal'\nc.InteractiveShell.colors = 'nocolor'\n"
    "c.HistoryManager.enabled = False\n"
)
os.environ["IPYTHONDIR"] = str(IPYTHON)
os.environ["MATPLOTLIBRC"] = str(HERE / "_static" / "matplotlibrc")
for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(threads, "1")

# --- gallery ---------------------------------------------------------------------------------

sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "within_subsection_order": "FileNameSortKey",
    "reset_modules": ("pictures.style",),
    "abort_on_example_error": True,
    "download_all_examples": False,
    "min_reported_time": 1e9,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
    "thumbnail_size": (360, 250),
}

# --- names -------------------------------------------------------------------------------------

autosummary_generate = True
autosummary_ignore_module_all = False
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
python_maximum_signature_line_length = 80
viewcode_line_numbers = True
add_module_names = False

# --- looks -------------------------------------------------------------------------------------

html_theme = "pydata_sphinx_theme"
html_title = "Lineara"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "logo": {"text": "Lineara"},
    "header_links_before_dropdown": 9,
    "navbar_align": "left",
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": ["theme-version"],
    "pygments_light_style": "tango",
    "pygments_dark_style": "github-dark",
}
