"""The sizes of builders as text."""


def show_count(n: int) -> str:
    """The number with spaces between thousands: `1 000 000`."""
    return f"{n:,}".replace(",", " ")


def show_shape(shape: tuple[int, ...]) -> str:
    """The shape as text: `1 000 x 64`, or `scalar`."""
    return " x ".join(map(show_count, shape)) or "scalar"


def show_part(k: int, n: int) -> str:
    """k / n in percent, to two digits."""
    return f"{100 * k / n if n else 0:.2g} %"
