"""The words of the policy language, once: operators, verdicts, path roots and their fixed keys.

Plain constants, shared by whatever reads policies; nothing here decides anything.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = [
    "ALWAYS",
    "COMBINING",
    "CONTEXT_KEYS",
    "DECLARED_KEYS",
    "ELEMENT",
    "KIND_AT",
    "NEGATED",
    "OPERATORS",
    "ORDERING",
    "PRINCIPAL_KEYS",
    "ROOTS",
]

ALWAYS = "always"
ELEMENT = "."
COMBINING = ("all_of", "any_of", "not")

# Each of these is `not` over another operator, and is replaced by it when the policy is read.
NEGATED: Mapping[str, str] = {"ne": "eq", "not_in": "in", "not_between": "between"}
ORDERING = ("gt", "ge", "lt", "le")
OPERATORS = (
    "eq",
    "ne",
    "in",
    "not_in",
    "gt",
    "ge",
    "lt",
    "le",
    "between",
    "not_between",
    "matches",
    "starts_with",
    "ends_with",
    "contains",
    "contains_any",
    "contains_all",
    "exists",
    "size",
    "each",
    "some",
    "glob",
    "under",
    "host_in",
    "normalized",
)

ROOTS = ("tool", "args", "given", "injected", "declared", "context")
DECLARED_KEYS = (
    "cost",
    "reversible",
    "scope",
    "has_shadow",
    "blast_radius_hint",
    "isolation",
    "labels",
)
PRINCIPAL_KEYS = ("kind", "id", "name")
CONTEXT_KEYS = (
    "environment",
    "workspace",
    "correlation_id",
    "step_seq",
    "timestamp",
    "extra",
    "principal",
    "labels",
    "history",
    "counts",
    "sums",
    "user_prompt",
    "trusted",
)

# What a value at these paths can be; an operand of another kind could only ever be an error.
KIND_AT: Mapping[tuple[str | int, ...], str] = {
    ("tool",): "string",
    ("tool.namespace",): "string",
    ("declared", "cost"): "string",
    ("declared", "reversible"): "bool",
    ("declared", "has_shadow"): "bool",
    ("declared", "blast_radius_hint"): "number",
    ("declared", "isolation"): "string",
    ("declared", "scope"): "list",
    ("declared", "labels"): "list",
    ("context", "environment"): "string",
    ("context", "workspace"): "string",
    ("context", "correlation_id"): "string",
    ("context", "step_seq"): "number",
    ("context", "principal", "kind"): "string",
    ("context", "principal", "id"): "string",
    ("context", "principal", "name"): "string",
}
