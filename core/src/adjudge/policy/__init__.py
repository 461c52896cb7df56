"""The policy language: what it says (`compile_policy`) and what follows from it (`evaluate`).

Decisions are pure; enforcing them is the guard's work.
"""

from __future__ import annotations

from adjudge.errors import PolicyCompileError
from adjudge.policy._bundle import (
    LayeredPolicyBundle,
    PolicyBundle,
    PolicyLayer,
    compile_policy,
    load_policy_file,
)
from adjudge.policy._constructors import allow, approve_required, deny, dry_run, transform
from adjudge.policy._evaluate import evaluate
from adjudge.policy._layers import (
    Combiner,
    first_layer_wins,
    last_layer_wins,
    strict_overrides_loose,
)
from adjudge.policy._model import Defaults as PolicyDefaults
from adjudge.policy._python_rules import PythonRule, versioned

__all__ = [
    "Combiner",
    "LayeredPolicyBundle",
    "PolicyBundle",
    "PolicyCompileError",
    "PolicyDefaults",
    "PolicyLayer",
    "PythonRule",
    "allow",
    "approve_required",
    "compile_policy",
    "deny",
    "dry_run",
    "evaluate",
    "first_layer_wins",
    "last_layer_wins",
    "load_policy_file",
    "strict_overrides_loose",
    "transform",
    "versioned",
]
