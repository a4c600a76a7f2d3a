"""Containers as functions see them: lazy stand-ins for lists, dicts and records, and points."""
