"""The seam: what an integration with a framework needs, and users of Adjudge do not.

An integration translates, and does nothing else. For each call that its framework is about to run
it makes a `ProposedCall` and hands it, with the framework's own continuation, to
`ToolGuard.govern_call` (or its sync twin); then it gives the framework what came of it:
`result.value` where the body ran, `text` in the framework's own shape where it did not.

Who writes a ledger for another store finds here, too, what each of them does alike: `answered`
applies an answer, the codec makes text of entries and takes nothing on trust. So do those of run
and session stores (`read_step`, `read_session`), and `duplicate_record` and its like say who was
first.

Who reads a text of another kind as strictly as a policy is read (duplicate keys, YAML's surprises,
every problem with its place) finds the reader here as well: `parse` and what it gives, and
`compile_pattern`, whose expressions cannot hang.

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
from adjudge._stores.canonical import parse_canonical
from adjudge._stores.codec import (
    read_session,
    read_step,
    session_record_from_json,
    session_record_to_json,
    step_record_from_json,
    step_record_to_json,
)
from adjudge._stores.outcomes import (
    duplicate_record,
    session_changed,
    session_exists,
    unknown_session,
)
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
from adjudge.policy._patterns.pattern import SubjectTooLong, UnsafePattern, compile_pattern
from adjudge.policy._reading.nodes import Fields, Items, Node, Problems
from adjudge.policy._reading.source import parse
from adjudge.policy._reading.suggest import did_you_mean
from adjudge.policy._reading.values import read_fields_of, read_text, read_whole, read_word

__all__ = [
    "EMPTY",
    "WAITING",
    "Admitted",
    "CallPlace",
    "Effective",
    "EntryState",
    "Fields",
    "FrozenDict",
    "FrozenList",
    "GovernedRun",
    "InvalidArguments",
    "Items",
    "LedgerEntry",
    "Node",
    "Normalised",
    "OpaqueValue",
    "Problems",
    "ProposedCall",
    "Replay",
    "SubjectTooLong",
    "UnsafePattern",
    "answered",
    "canonical_json",
    "compile_pattern",
    "decode_entry",
    "denied_text",
    "did_you_mean",
    "digest",
    "dry_run_text",
    "duplicate_record",
    "encode_answers",
    "encode_entry",
    "encode_result",
    "freeze",
    "freeze_object",
    "is_async",
    "ledger_key",
    "normalise",
    "parse",
    "parse_arguments",
    "parse_canonical",
    "project",
    "project_object",
    "read_fields_of",
    "read_session",
    "read_step",
    "read_text",
    "read_whole",
    "read_word",
    "session_changed",
    "session_exists",
    "session_record_from_json",
    "session_record_to_json",
    "step_record_from_json",
    "step_record_to_json",
    "thaw",
    "unknown_session",
    "warn_unless_durable",
]
