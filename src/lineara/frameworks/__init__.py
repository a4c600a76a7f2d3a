"""Functions of ours in torch and JAX, and functions of theirs here; neither is imported before."""
