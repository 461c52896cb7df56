"""Enforcing a decision: the guard, mediation, its drivers, approvals, tools."""
