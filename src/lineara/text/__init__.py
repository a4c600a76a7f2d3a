"""Places in source text, and what parsers share."""
