"""Recorded tool calls, decided by the engine and by the reference evaluator of the tests.

Reads every call, `{"tool": ..., "args": {...}}` at any depth, out of JSON Lines. Policies are made
of the calls themselves: for every tool rules whose conditions come from the values of one of its
calls, with all verdicts and many operators, in groups of tools. Each call is decided by its own
group's policy and by another's. What is printed: exceptions, disagreements, verdicts, throughput.

    python core/benchmarks/recorded_calls.py FOLDER_OR_FILE...
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from properties.trying import rules_of, view
from reference import ReferencePolicy, reference_evaluate

from adjudge import ActionRequest, ExecutionContext, Principal, compile_policy, evaluate

TOOLS_IN_A_POLICY = 40
VERDICTS = ("allow", "deny", "dry_run", "approve_required", "transform", "allow", "deny")
CONTEXT = ExecutionContext("recorded", Principal("agent", "recorded"))


def main() -> int:
    """Decide every call twice over by both, and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("paths", nargs="+", type=Path, help="JSON Lines, or folders of them")
    options = parser.parse_args()
    calls = list(recorded(options.paths))
    source = random.Random(7)
    policies, own = make_policies(calls, source)
    verdicts: Counter[str] = Counter()
    failed, differing, spent = [], [], 0.0
    for number, (tool, args) in enumerate(calls):
        for index in {own[tool], source.randrange(len(policies))}:
            compiled, reference = policies[index]
            request = ActionRequest(tool, args, None, CONTEXT)
            request = replace(
                request,
                resolved={
                    path: os.path.normpath("/" + path.lstrip("/"))
                    for path in compiled.paths_to_resolve(request)
                    if "\0" not in path
                },
            )
            start = time.perf_counter()
            found = evaluate(compiled, request)
            spent += time.perf_counter() - start
            verdicts[str(found.verdict)] += 1
            if "could not be evaluated" in found.reason:
                failed.append((tool, args, found.reason))
            expected = reference_evaluate(reference, request)
            if view(expected, request) != view(found, request) or not (
                rules_of(found) <= rules_of(expected)
            ):
                differing.append((tool, args, expected, found))
        if sys.stderr.isatty() and number % 500 == 0:
            print(f"\r{number} of {len(calls)} calls", end="", file=sys.stderr)
    decisions = verdicts.total()
    print(
        f"{len(calls)} calls of {len(own)} tools, {len(policies)} policies, {decisions} decisions"
    )
    print(f"  exceptions: {len(failed)}   disagreements: {len(differing)}")
    print("  " + ", ".join(f"{verdict} {count}" for verdict, count in verdicts.most_common()))
    print(f"  {decisions / spent:,.0f} decisions in a second of evaluate")
    for case in (*failed[:3], *differing[:3]):
        print("  ", *case)
    return 1 if failed or differing or not calls else 0


def recorded(paths: list[Path]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Give each call of each file; a shell command or a query alone is a call as well."""
    files = [file for path in paths for file in (sorted(path.glob("*.jsonl")) or [path])]
    for file in files:
        for line in file.read_text(encoding="utf-8").splitlines():
            yield from calls_in(json.loads(line))


def calls_in(value: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Give the calls within a JSON value."""
    if isinstance(value, list):
        for each in value:
            yield from calls_in(each)
    if not isinstance(value, dict):
        return
    if isinstance(value.get("tool"), str) and isinstance(value.get("args"), dict):
        yield value["tool"], value["args"]
        return
    for key, tool in (("command", "run_shell"), ("sql", "run_sql")):
        if isinstance(value.get(key), str):
            yield tool, {key: value[key]}
    for each in value.values():
        yield from calls_in(each)


def make_policies(calls: list[tuple[str, dict[str, Any]]], source: random.Random) -> Any:
    """Give (bundle, reference) of each group of tools, and the number of each tool's group."""
    examples: dict[str, list[dict[str, Any]]] = {}
    for tool, args in calls:
        examples.setdefault(tool, []).append(args)
    tools = sorted(examples)
    source.shuffle(tools)
    policies, own = [], {}
    for start in range(0, len(tools), TOOLS_IN_A_POLICY):
        rules = []
        for tool in tools[start : start + TOOLS_IN_A_POLICY]:
            own[tool] = len(policies)
            for _ in range(3):
                rules.append(rule(len(rules), tool, source.choice(examples[tool]), source))
        bundle = compile_policy({"version": 1, "rules": rules})
        policies.append((bundle, ReferencePolicy(bundle.source)))
    return policies, own


def rule(number: int, tool: str, args: dict[str, Any], source: random.Random) -> dict[str, Any]:
    """Make one rule out of one call."""
    verdict = source.choice(VERDICTS)
    keys = [key for key in args if key]
    chosen = source.sample(keys, min(len(keys), source.randint(1, 3)))
    parts = [condition(key, args[key], source) for key in chosen]
    if len(parts) > 1 and source.random() < 0.3:
        parts = [{source.choice(("any_of", "all_of")): parts}]
    if parts and source.random() < 0.2:
        parts[0] = {"not": parts[0]}
    named = [{"tool": tool}] if source.random() < 0.9 else []
    made = {
        "id": f"r{number}",
        "priority": source.randint(0, 3),
        "decision": verdict,
        "match": {"all_of": [*named, *parts]} if named or parts else "always",
    }
    if verdict == "transform":
        key = source.choice(keys) if keys else "note"
        made["transform"] = [{"path": f'args["{_quoted(key)}"]', "set": "rewritten"}]
    return made


def condition(key: str, value: Any, source: random.Random) -> dict[str, Any]:
    """Test one argument in a way that its value, or something near it, meets."""
    path = f'args["{_quoted(key)}"]'
    if isinstance(value, bool) or value is None:
        return {path: {"eq": value}}
    if isinstance(value, int | float):
        order = [{"gt": value - 1}, {"le": value}, {"between": [value - 1, value + 1]}]
        return {path: source.choice([*order, {"ne": value}, {"in": [value, value + 1]}])}
    if isinstance(value, str):
        return {path: text_test(value, source)}
    if isinstance(value, list):
        return {
            path: source.choice([{"size": {"ge": len(value)}}, {"exists": True}, *inside(value)])
        }
    return {path: source.choice([{"exists": True}, {"size": {"gt": 0}}])}


def inside(value: list[Any]) -> list[dict[str, Any]]:
    """Test a list by its first element, where that is a text or a number."""
    first = value[0] if value else None
    if isinstance(first, bool) or not isinstance(first, str | int):
        return []
    return [{"contains": first}, {"some": {".": first}}, {"each": {".": first}}]


def text_test(value: str, source: random.Random) -> dict[str, Any]:
    """Test a text: as a whole, by its beginning, end, parts, as a pattern, a path or a URL."""
    tests: list[dict[str, Any]] = [
        {"eq": value},
        {"not_in": [value, "other"]},
        {"starts_with": value[:3]},
        {"ends_with": value[-2:]},
        {"contains": value[1:4]},
        {"matches": "^" + re.escape(value[:8])},
        {"matches": "[a-z]+$"},
        {"size": {"lt": len(value) + 1}},
        {"gt": value[:1]},
        {"normalized": {"eq": value}},
    ]
    if "/" in value:
        tests += [{"under": value.rsplit("/", 1)[0] or "/"}, {"glob": "**/*"}] * 3
    if value.startswith("http"):
        tests += [{"host_in": ["*.com", "example.org"]}] * 3
    return source.choice(tests)


def _quoted(key: str) -> str:
    return key.replace("\\", "\\\\").replace('"', '\\"')


if __name__ == "__main__":
    raise SystemExit(main())
