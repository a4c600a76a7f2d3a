"""The passes of Linear A, one a file: pure functions from programs to programs."""
