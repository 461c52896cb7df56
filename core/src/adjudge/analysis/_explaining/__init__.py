"""Explain: a decision taken apart, each answer from the engine itself."""
