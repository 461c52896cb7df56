"""Test cases of policies: reading and running them, coverage, mutants."""
