"""Names in test cases that neither the policy nor a list of tools knows: perhaps misspelt.

Such a case may pass for the wrong reason, as a denial of a tool that there is not. Where the file
of cases lists its tools, an unknown name is an error already; elsewhere it is worth a warning, for
a policy need not name a tool to deny it.
"""

from __future__ import annotations

from collections.abc import Iterator

from adjudge.analysis._asking import Policy
from adjudge.analysis._comparing.matches import (
    leaves_of,
    may_concern,
    mentioned_tools,
    paths_of,
)
from adjudge.analysis._parts import part_of, value_matcher
from adjudge.analysis._testing.cases import PolicyCase, PolicyTests, spot
from adjudge.policy import LayeredPolicyBundle, PolicyBundle
from adjudge.policy._match import Reading
from adjudge.policy._model import Leaf, Rule
from adjudge.policy._reading.suggest import nearest

__all__ = ["unknown_names"]

_READING = Reading(permitting=True, namespaces={})
_LITERAL = ("eq", "in")


def unknown_names(policy: Policy, tests: PolicyTests) -> tuple[str, ...]:
    """Give a sentence for each tool and argument of the cases that nothing else names.

    None where the policy has Python rules, which may name anything.
    """
    layers = policy.layers if isinstance(policy, LayeredPolicyBundle) else (("", policy),)
    bundles = [bundle for _, bundle in layers]
    if any(bundle.python_rules for bundle in bundles):
        return ()
    found: dict[tuple[str, ...], str] = {}
    for case in tests.cases:
        unknown = tuple(_tool(case, bundles, tests)) or tuple(_arguments(case, bundles, tests))
        for key, sentence in unknown:
            found.setdefault(key, f"{spot(case.place)}: {sentence}")
    return tuple(found.values())


def _tool(
    case: PolicyCase, bundles: list[PolicyBundle], tests: PolicyTests
) -> Iterator[tuple[tuple[str, ...], str]]:
    tool = case.request.tool
    known = {name for bundle in bundles for name in mentioned_tools(bundle.source)}
    # Of a tool that declares nothing the case says itself that nobody knows it.
    if tests.tools is not None or case.request.declared is None or tool in known:
        return
    if any(_is_met_by(leaf, case) for rule in _rules(bundles) for leaf in leaves_of(rule.match)):
        return
    yield (tool,), f'no rule and no tools: names the tool "{tool}". {_advice(tool, known)}'


def _is_met_by(leaf: Leaf, case: PolicyCase) -> bool:
    """Whether a test of the tool's name other than by whole names is met."""
    if leaf.path.root != "tool" or leaf.operator in _LITERAL:
        return False
    return value_matcher(part_of(leaf, _READING))(case.request, case.request.tool) is True


def _arguments(
    case: PolicyCase, bundles: list[PolicyBundle], tests: PolicyTests
) -> Iterator[tuple[tuple[str, ...], str]]:
    tool = case.request.tool
    listed = None if tests.tools is None else tests.tools.get(tool)
    if listed is not None and listed.args is not None:
        return
    known = {
        str(steps[1])
        for rule in _rules(bundles)
        if may_concern(rule, tool)
        for steps in _argument_paths(rule)
    }
    for name in sorted(case.request.args.keys() - known):
        where = f'the argument "{name}" of "{tool}"'
        yield (tool, name), f"no rule reads and no tools: names {where}. {_advice(name, known)}"


def _argument_paths(rule: Rule) -> Iterator[tuple[str | int, ...]]:
    for leaf in leaves_of(rule.match):
        for steps in paths_of(leaf):
            if steps[0] in ("args", "given") and len(steps) > 1:
                yield steps
    for edit in rule.edits:
        if edit.path:
            yield ("args", *edit.path)


def _rules(bundles: list[PolicyBundle]) -> Iterator[Rule]:
    for bundle in bundles:
        yield from bundle.source.rules


def _advice(name: str, known: set[str]) -> str:
    close = nearest(name, sorted(known))
    hint = "" if close is None else f'Did you mean "{close}"? '
    return f"{hint}List the tools of the cases, with their args, under tools:."
