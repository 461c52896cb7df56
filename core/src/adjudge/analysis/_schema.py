"""The JSON Schema of a policy file, for editors: completion, and most mistakes as they are typed.

Made of the reader's own words, so that a new operator cannot be forgotten. What compiles fits the
schema (but for words in capitals that YAML reads as others); what fits it may still not compile:
ids that are taken, patterns that are unsafe and names that nothing has are found by `policy lint`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from adjudge._types import Verdict
from adjudge.policy._reading.policy import VERSION
from adjudge.policy._reading.words import (
    CONTEXT_KEYS,
    DECLARED_KEYS,
    OPERATORS,
    ORDERING,
    PRINCIPAL_KEYS,
)

__all__ = ["policy_schema"]

Schema = dict[str, Any]

_STEP = r"""(?:\.[^.\[\]"']+|\[(?:0|[1-9][0-9]*|"(?:[^"\\]|\\.)*"|'[^']*')\])"""


def policy_schema() -> Schema:
    """Give the schema, of draft 2020-12, as a fresh JSON value."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:adjudge:policy:{VERSION}",
        "title": "Adjudge policy",
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "version": {"const": VERSION, "description": "The version of the policy language."},
            "defaults": _optional(_defaults()),
            "predicates": _optional(_named(_to("match"), "Named conditions, for `match`.")),
            "tools": _optional(_named(_to("tool"), "What the reviewer knows about tools.")),
            "rules": _optional({"type": "array", "items": _to("rule")}),
        },
        "$defs": {
            "verdict": _verdict(Verdict),
            "tool": _tool(),
            "rule": _rule(),
            "match": _match(_KEYS_OF_CALLS, names="The name of a predicate, or `always`."),
            "element": _match(_KEYS_OF_ELEMENTS, names="`always`."),
            "tests": _tests(),
            "edit": _edit(),
            "obligation": _obligation(),
        },
    }


def _text() -> Schema:
    return {"type": "string"}


def _name() -> Schema:
    return {"type": "string", "minLength": 1}


def _names() -> Schema:
    return {"type": "array", "items": _name()}


def _ref() -> Schema:
    path: Schema = {"type": "string", "description": "A path to compare with."}
    return _object({"ref": path}, required=["ref"])


def _to(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


def _optional(schema: Schema) -> Schema:
    """A section that is left empty is not there."""
    return {"anyOf": [schema, {"type": "null"}]}


def _object(properties: Mapping[str, Schema], *, required: Iterable[str] = ()) -> Schema:
    schema: Schema = {
        "type": "object",
        "properties": dict(properties),
        "additionalProperties": False,
    }
    return {**schema, "required": list(required)} if required else schema


def _named(schema: Schema, description: str) -> Schema:
    return {
        "type": "object",
        "description": description,
        "propertyNames": {"minLength": 1},
        "additionalProperties": schema,
    }


def _verdict(verdicts: Iterable[Verdict]) -> Schema:
    """Verdicts are read in any case; the small one is what an editor offers."""
    words = [str(verdict) for verdict in verdicts]
    any_case = "|".join(
        "".join(f"[{char}{char.upper()}]" if char.isalpha() else char for char in word)
        for word in words
    )
    return {"anyOf": [{"enum": words}, {"type": "string", "pattern": f"^(?:{any_case})$"}]}


def _defaults() -> Schema:
    verdict = _verdict(each for each in Verdict if each is not Verdict.TRANSFORM)
    return _object(
        {
            "on_no_match": {**verdict, "description": "Where no rule matches (default: deny)."},
            "on_missing_shadow": {
                **verdict,
                "description": "Where an irreversible tool has no shadow, and no rule matches "
                "(default: approve_required).",
            },
        }
    )


def _tool() -> Schema:
    return _object(
        {
            "reversible": {"type": "boolean"},
            "cost": {"enum": ["low", "medium", "high"]},
            "scope": _names(),
            "labels": _names(),
            "blast_radius_hint": {"type": "integer"},
            "isolation": _name(),
            "namespace": _name(),
        }
    )


def _rule() -> Schema:
    rule = _object(
        {
            "id": {"type": "string", "minLength": 1, "pattern": "^[^<]"},
            "priority": {"type": "integer", "description": "Higher is asked first (default: 0)."},
            "description": _text(),
            "match": {**_to("match"), "description": "When the rule applies."},
            "decision": {**_to("verdict"), "description": "What it decides (default: deny)."},
            "verdict": {**_to("verdict"), "description": "Another name for `decision`."},
            "reason": {**_text(), "description": "What the model and the record are told."},
            "approvers": {**_names(), "description": "Who may grant it."},
            "timeout_seconds": {"type": "number", "exclusiveMinimum": 0},
            "transform": {
                "anyOf": [
                    _to("edit"),
                    {"type": "array", "items": _to("edit"), "minItems": 1},
                ]
            },
            "obligations": _optional({"type": "array", "items": _to("obligation")}),
        },
        required=["match"],
    )
    asks, rewrites = _decides(Verdict.APPROVE_REQUIRED), _decides(Verdict.TRANSFORM)
    rule["not"] = {"required": ["decision", "verdict"]}
    rule["dependentSchemas"] = {"approvers": asks, "timeout_seconds": asks, "transform": rewrites}
    rule["if"] = rewrites
    rule["then"] = {"required": ["transform"]}
    return rule


def _decides(verdict: Verdict) -> Schema:
    return {
        "anyOf": [
            {"properties": {key: _verdict([verdict])}, "required": [key]}
            for key in ("decision", "verdict")
        ]
    }


def _match(keys: tuple[str, str], *, names: str) -> Schema:
    """A mapping of tests and combinations, or a name."""
    with_operator, without = keys
    itself = "match" if keys == _KEYS_OF_CALLS else "element"
    several: Schema = {"type": "array", "items": _to(itself), "minItems": 1}
    tests = {f"^{with_operator}\\.{operator}$": schema for operator, schema in _operands().items()}
    bare = f"^(?!{with_operator}\\.(?:{'|'.join(OPERATORS)})$){without}$"
    return {
        "anyOf": [
            {"type": "string", "minLength": 1, "description": names},
            {
                "type": "object",
                "minProperties": 1,
                "properties": {
                    "all_of": {**several, "description": "Every one must hold."},
                    "any_of": {**several, "description": "At least one must hold."},
                    "not": {**_to(itself), "description": "Must not hold."},
                },
                "patternProperties": {
                    **tests,
                    bare: {"anyOf": [_not_an_object(), _ref(), _literal(True), _to("tests")]},
                },
                "additionalProperties": False,
            },
        ]
    }


def _keys_of_calls() -> tuple[str, str]:
    deep = ("principal", "extra", "trusted")
    flat = "|".join(key for key in CONTEXT_KEYS if key not in deep)
    owned = "|".join(
        (
            f"(?:args|given|injected){_STEP}",
            rf"declared\.(?:{'|'.join(DECLARED_KEYS)})",
            rf"context\.principal\.(?:{'|'.join(PRINCIPAL_KEYS)})",
            rf"context\.(?:extra|trusted){_STEP}",
            rf"context\.(?:{flat})",
        )
    )
    path = rf"(?:tool(?:\.namespace)?|(?:{owned}){_STEP}*)"
    return path, path


_KEYS_OF_CALLS = _keys_of_calls()
_KEYS_OF_ELEMENTS = (f"{_STEP}+", rf"(?:\.|{_STEP}+)")


def _tests() -> Schema:
    schema = _object(_operands())
    schema["minProperties"] = 1
    schema["description"] = "Operators, all of which must hold."
    return schema


def _literal(schema: Any) -> Schema:
    return _object({"literal": schema}, required=["literal"])


def _not_an_object() -> Schema:
    return {"type": ["null", "boolean", "number", "string", "array"]}


def _operands() -> dict[str, Schema]:
    """Give what each operator takes, in the order in which the operators are documented."""
    scalar: Schema = {"type": ["number", "string"]}
    pair: Schema = {"type": "array", "items": scalar, "minItems": 2, "maxItems": 2}
    several: Schema = {"type": "array", "minItems": 1}
    texts: Schema = {"type": "array", "items": _text(), "minItems": 1}
    numbers: dict[str, Schema] = {
        **{key: {"type": "number"} for key in (*ORDERING, "eq", "ne")},
        **{key: {"type": "array", "items": {"type": "number"}} for key in ("in", "not_in")},
        **dict.fromkeys(("between", "not_between"), pair),
    }
    found: dict[str, Schema] = {
        **dict.fromkeys(("eq", "ne", "contains"), _or_ref(_not_an_object(), True)),
        **dict.fromkeys(("in", "not_in", "contains_any", "contains_all"), _or_ref(several)),
        **dict.fromkeys(ORDERING, _or_ref(scalar)),
        **dict.fromkeys(("between", "not_between"), _or_ref(pair)),
        "matches": {"type": "string", "format": "regex"},
        **dict.fromkeys(("starts_with", "ends_with"), _or_ref({"anyOf": [_text(), texts]})),
        "exists": {"type": "boolean"},
        "size": {"anyOf": [{"type": "number"}, {**_object(numbers), "minProperties": 1}]},
        **{key: {**_to("element"), "type": "object"} for key in ("each", "some")},
        "glob": _name(),
        "under": _or_ref(_name()),
        "host_in": _or_ref({"type": "array", "items": _name(), "minItems": 1}),
        "normalized": {
            **_object({"eq": _text(), "in": texts, "matches": _text()}),
            "minProperties": 1,
        },
    }
    return {operator: found[operator] for operator in OPERATORS}


def _or_ref(schema: Schema, literal: Any = None) -> Schema:
    return {"anyOf": [schema, _ref(), _literal(schema if literal is None else literal)]}


def _edit() -> Schema:
    where: Schema = {"type": "string", "pattern": r"^(?:\$\.)?args"}
    edit = _object(
        {
            "path": {**where, "description": "Which argument, as in args.items[0].sku."},
            "jsonpath": {**where, "description": "Another name for `path`."},
            "set": {"description": "The value to write."},
            "append": {"description": "What to add to a text, or to a list as one element."},
            "delete": {"const": True},
        }
    )
    edit["oneOf"] = [{"required": [kind]} for kind in ("set", "append", "delete")]
    edit["not"] = {"required": ["path", "jsonpath"]}
    return edit


def _obligation() -> Schema:
    return {
        "anyOf": [
            {**_name(), "description": "The name of a handler, run after the body."},
            _object(
                {
                    "id": {**_name(), "description": "The name of a handler."},
                    "phase": {"enum": ["pre", "post"]},
                    "on": {"enum": ["execute", "always"]},
                    "params": {"type": "object"},
                },
                required=["id"],
            ),
        ]
    }
