"""`python -m lineara demo`: a predator-prey model in plain Python, fitted to real records."""
