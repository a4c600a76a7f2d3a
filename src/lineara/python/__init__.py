"""Plain Python code as it is: copies that see other values, and what a function captured."""
