"""The seam: what an integration with a framework needs, and users of Adjudge do not.

An integration translates, and does nothing else. For each call that its framework is about to run
it makes a `ProposedCall` and hands it, with the framework's own continuation, to
`ToolGuard.govern_call` (or its sync twin); then it gives the framework what came of it:
`result.value` where the body ran, `text` in the framework's own shape where it did not.

Who writes a ledger for another store finds here, too, what each of them does alike: `answered`
applies an answer, the codec makes text of entries and takes nothing on trust.

It must reach every path to a body, run the body nowhere but in the continuation, hand on the
`Effective` arguments, and let raised exceptions pass. It may not decide, retry, cache or answer by
itself. `docs/` has a guide with an example.
"""

from __future__ import annotations

from adjudge._arguments.parsing import parse_arguments
from adjudge._arguments.projection import project, project_object
from adjudge._arguments.proposal import (
    Admitted,
    Effective,
    InvalidArguments,
    ProposedCall,
    Replay,
)
from adjudge._arguments.schema import Normalised, normalise
from adjudge._enforcement.places import CallPlace
from adjudge._enforcement.runs import GovernedRun, warn_unless_durable
from adjudge._enforcement.signature import is_async
from adjudge._ledger.codec import decode_entry, encode_answers, encode_entry, encode_result
from adjudge._ledger.entries import WAITING, EntryState, LedgerEntry, answered
from adjudge._ledger.keys import ledger_key
from adjudge._texts import denied_text, dry_run_text
from adjudge._values import (
    EMPTY,
    FrozenDict,
    FrozenList,
    OpaqueValue,
    canonical_json,
    digest,
    freeze,
    freeze_object,
    thaw,
)

__all__ = [
    "EMPTY",
    "WAITING",
    "Admitted",
    "CallPlace",
    "Effective",
    "EntryState",
    "FrozenDict",
    "FrozenList",
    "GovernedRun",
    "InvalidArguments",
    "LedgerEntry",
    "Normalised",
    "OpaqueValue",
    "ProposedCall",
    "Replay",
    "answered",
    "canonical_json",
    "decode_entry",
    "denied_text",
    "digest",
    "dry_run_text",
    "encode_answers",
    "encode_entry",
    "encode_result",
    "freeze",
    "freeze_object",
    "is_async",
    "ledger_key",
    "normalise",
    "parse_arguments",
    "project",
    "project_object",
    "thaw",
    "warn_unless_durable",
]
