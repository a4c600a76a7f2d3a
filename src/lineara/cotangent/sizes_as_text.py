"""How the sizes of builders are written."""


def show_count(n: int) -> str:
    """1 000 000, with spaces between thousands."""
    return f"{n:,}".replace(",", " ")


def show_shape(shape: tuple[int, ...]) -> str:
    """`1 000 x 64`, or `scalar`."""
    return " x ".join(map(show_count, shape)) or "scalar"


def show_part(k: int, n: int) -> str:
    """k of n in percent, to two digits."""
    return f"{100 * k / n if n else 0:.2g} %"
