"""Diff: calls on which two policies decide otherwise."""
