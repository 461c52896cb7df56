"""Lint: proofs that a rule or a condition does not do what its author will have meant."""
