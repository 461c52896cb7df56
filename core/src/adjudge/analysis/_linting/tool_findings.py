"""What a policy says of tools that there are not, and does not say of those that there are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from adjudge._types import ToolMetadata, Verdict
from adjudge.analysis._linting.conditions import TRUE, Condition
from adjudge.analysis._linting.findings import Finding, of_layer
from adjudge.analysis._linting.formulas import Every, Formula, Formulas
from adjudge.analysis._linting.prover import Prover
from adjudge.analysis._linting.tool_lists import KnownTool, ToolList
from adjudge.analysis._linting.views import LayerView, RuleView, shown_leaf
from adjudge.analysis._parts import Part
from adjudge.policy import LayeredPolicyBundle, PolicyBundle
from adjudge.policy._model import Leaf, Path
from adjudge.policy._reading.suggest import did_you_mean

__all__ = ["missing_tools", "unknown_tools"]

_FIELDS = ("cost", "reversible", "scope", "has_shadow", "labels")


def unknown_tools(layer: LayerView, tools: ToolList) -> Iterator[Finding]:
    """Find the names, and the patterns of names, that no tool of the list has."""
    names = tuple(tool.name for tool in tools)
    for view in layer.rules:
        seen: set[str] = set()
        for part in _tool_leaves(view.readings[0]):
            for message in _unknown(part, names):
                if message not in seen:
                    seen.add(message)
                    yield Finding("unknown_tool", message, view.name, part.match.place)  # type: ignore[union-attr]
    for name, entry in layer.source.tools.items():
        if name not in names:
            message = f'tools: has an entry for "{name}", {_not_there(name, names)}'
            yield Finding("unknown_tool", of_layer(layer.name, message), None, entry.place)


def _tool_leaves(part: Part) -> Iterator[Part]:
    if isinstance(part.match, Leaf) and part.match.path.root == "tool":
        yield part
    for each in part.parts:
        yield from _tool_leaves(each)


def _unknown(part: Part, names: Sequence[str]) -> Iterator[str]:
    leaf = part.match
    assert isinstance(leaf, Leaf)
    operand = leaf.operand
    if leaf.operator in ("eq", "in"):
        for name in operand if isinstance(operand, list) else (operand,):
            if isinstance(name, str) and name not in names:
                yield f'The rule names "{name}", {_not_there(name, names)}'
        return
    condition = Condition(part, ("tool",))
    if condition.evaluable and not any(condition.ask(name) == TRUE for name in names):
        yield (f"No tool of the list meets {shown_leaf(leaf)}. Its tools are: {_shortened(names)}.")


def _not_there(name: str, names: Sequence[str]) -> str:
    few = names if len(names) <= 12 else ()
    hint = did_you_mean(name, names) if names else ""
    return "which is not in the tool list. " + (hint if few or "mean" in hint else "")


def _shortened(names: Sequence[str]) -> str:
    shown = ", ".join(names[:12])
    return f"{shown}, ..." if len(names) > 12 else shown or "none"


def missing_tools(
    bundle: PolicyBundle | LayeredPolicyBundle,
    layers: Sequence[LayerView],
    tools: ToolList,
    prover: Prover,
) -> Iterator[Finding]:
    """Find the tools that no rule names, and that no rule for all tools would let run."""
    if any(layer.has_python_rules for layer in layers):
        # A Python rule may speak of any tool.
        return
    for tool in tools:
        if not any(
            _speaks_of(view, tool, layer, prover) for layer in layers for view in layer.rules
        ):
            verdict = bundle.defaults.on_no_match
            yield Finding(
                "missing_tool",
                f'No rule speaks of the tool "{tool.name}", so the default decides every call of '
                f"it: {verdict}. Add a rule that says what is meant, even if it is {verdict}.",
            )


def _speaks_of(view: RuleView, tool: KnownTool, layer: LayerView, prover: Prover) -> bool:
    named = view.tools is not None or any(True for _ in _tool_leaves(view.readings[0]))
    if view.tools is not None and tool.name not in view.tools:
        return False
    if not named and view.rule.verdict is Verdict.DENY:
        return False
    formulas = layer.formulas(tool.name)
    goals: list[Formula] = [formulas.of_tool(), view.can_match(formulas)]
    return not prover.refutes(Every((*goals, *_declared(tool, layer, formulas))))


def _declared(tool: KnownTool, layer: LayerView, formulas: Formulas) -> list[Formula]:
    """Say what the tool declares, as far as that is known."""
    entry = layer.source.tools.get(tool.name)
    stated = {} if entry is None else dict(entry.fields)
    if tool.metadata is None and entry is None:
        return []
    declared = tool.metadata or ToolMetadata()
    facts: list[Formula] = []
    for name in _FIELDS if tool.metadata is not None else stated:
        value = stated.get(name, getattr(declared, name))
        value = list(value) if isinstance(value, tuple) else value
        if value is not None:
            facts.append(formulas.equal(Path("declared", (name,), f"declared.{name}"), value))
    return facts
