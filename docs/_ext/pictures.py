"""How the pictures of the gallery look: as those of the other pages."""

import os

import matplotlib


def style(settings: dict, file: str) -> None:
    """Give an example the settings of the site, whatever the last one changed."""
    matplotlib.rc_file(os.environ["MATPLOTLIBRC"])
