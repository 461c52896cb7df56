"""The reference evaluator: docs/reference/semantics.md, read as plainly as it can be.

It is the oracle of the property tests, so it prefers clarity to speed, looks nothing up in the
compiled policy and shares with the package only the values, the model and the pure primitives of
patterns and places. A comment names the clause that each piece reads.
"""

from reference.answer import reference_evaluate
from reference.policy import LayeredReference, ReferencePolicy

__all__ = ["LayeredReference", "ReferencePolicy", "reference_evaluate"]
