"""Linear A, the typed language: syntax, text, checker, cost, evaluator  [Radul et al. 2023]."""
