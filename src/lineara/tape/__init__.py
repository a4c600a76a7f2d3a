"""The eager engine: values now, and the linear graph of the derivative beside them."""
