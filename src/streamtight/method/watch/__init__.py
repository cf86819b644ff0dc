"""Queries on many items at once."""
