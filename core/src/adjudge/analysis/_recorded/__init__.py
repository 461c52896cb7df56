"""Recorded logs: reading them, replaying them, and what policy they suggest."""
