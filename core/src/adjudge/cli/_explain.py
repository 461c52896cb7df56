"""`adjudge explain`: why a call gets the verdict that it gets."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adjudge._enforcement.approvals import escaped
from adjudge._record.format import to_json
from adjudge.cli._loading import load_or_refuse
from adjudge.cli._output import say, say_json
from adjudge.cli._refusing import Refused
from adjudge.cli._terminal import painted
from adjudge.errors import AdjudgeError
from adjudge.policy import LayeredPolicyBundle, PolicyBundle, PolicyLayer, compile_policy

if TYPE_CHECKING:
    from adjudge.analysis import ConditionAnswer, Explanation, LayerAnswer, RuleAnswer

__all__ = ["add"]

_MOST_SHOWN = 100
_STYLES: Mapping[str, str] = {
    "true": "green",
    "false": "red",
    "error": "yellow",
    "doubtful": "yellow",
    "not asked": "dim",
    "allow": "green",
    "deny": "red",
}


def add(commands: Any) -> None:
    """Add the subcommand."""
    parser = commands.add_parser("explain", help="say why a call gets its verdict")
    parser.add_argument(
        "policies",
        nargs="+",
        metavar="POLICY",
        help="a policy; several are layers, named after their files; - is standard input",
    )
    parser.add_argument(
        "--request", metavar="FILE", help="a JSON object with call and context; - is standard input"
    )
    parser.add_argument("--tool", metavar="NAME", help="the tool that is called")
    parser.add_argument("--namespace", metavar="NAME", help="where the tool came from")
    parser.add_argument("--args", metavar="JSON", help="the arguments, as a JSON object")
    parser.add_argument("--context", metavar="JSON", help="principal, environment, extra, ...")
    parser.add_argument("--principal", metavar="KIND:ID", help="who asks, as in user:alice")
    parser.add_argument("--environment", metavar="NAME", help="what context.environment is")
    parser.add_argument("--all", action="store_true", help="show rules that were not asked as well")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.set_defaults(run=_explain)


def _explain(options: argparse.Namespace) -> int:
    from adjudge.analysis import explain
    from adjudge.analysis._asking import settled

    bundle = _load(options.policies)
    request, unresolvable = _request(options)
    request, _ = settled(bundle, request, unresolvable=unresolvable)
    explanation = explain(bundle, request)
    if options.json:
        say_json(explanation.as_json())
    else:
        say("\n".join(_told(explanation, everything=options.all)))
    return 0


def _load(files: list[str]) -> PolicyBundle | LayeredPolicyBundle:
    if len(files) == 1:
        return load_or_refuse(files[0])
    return compile_policy(
        [PolicyLayer(Path(file).stem, load_or_refuse(file).source) for file in files]
    )


def _request(options: argparse.Namespace) -> tuple[Any, frozenset[str]]:
    """Make the request of a file, or of the options; an option stands in place of the file's."""
    from adjudge.analysis._call_reading import Surroundings, read_call
    from adjudge.policy._model import Place
    from adjudge.policy._reading.data_source import nodes_of
    from adjudge.policy._reading.nodes import Fields, Problems

    stated = {} if options.request is None else _json_file(options.request)
    call = _object(stated.get("call", {}), "call in the request")
    context = _object(stated.get("context", {}), "context in the request")
    unknown = sorted(stated.keys() - {"call", "context"})
    if unknown:
        raise _no_call(f"A request has call and context; it has no {unknown[0]!r}.")
    call.update(
        {
            name: value
            for name, value in (("tool", options.tool), ("namespace", options.namespace))
            if value is not None
        }
    )
    if options.args is not None:
        call["args"] = _json(options.args, "--args")
    if options.context is not None:
        context.update(_object(_json(options.context, "--context"), "--context"))
    if options.principal is not None:
        context["principal"] = _principal(options.principal)
    if options.environment is not None:
        context["environment"] = options.environment
    if "tool" not in call:
        raise _no_call("Say which tool is called: --tool NAME, or call.tool in the request.")
    problems = Problems(file=options.request)
    node = nodes_of({"call": call, "context": context}, problems)
    problems.stop_if_any()
    assert isinstance(node, Fields)
    surroundings = Surroundings(None, None, problems)
    found = read_call(node.get("call"), node.get("context"), Place("request"), surroundings)
    problems.stop_if_any()
    assert found is not None
    return found


def _json_file(file: str) -> dict[str, Any]:
    import sys

    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise _no_call(f"The request {file!r} cannot be read: {error}.") from None
    return _object(_json(text, file), file)


def _json(text: str, where: str) -> Any:
    from adjudge._arguments.parsing import parse_arguments

    try:
        return parse_arguments(text)
    except AdjudgeError as error:
        raise _no_call(f"{where} is no JSON object that a call could have: {error}") from None


def _object(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _no_call(f"{where} is no JSON object.")
    return dict(value)


def _principal(text: str) -> dict[str, str]:
    """Read KIND:ID; a word alone could be either, and is not guessed at."""
    kind, colon, name = text.partition(":")
    if not colon:
        raise _no_call(f"--principal is KIND:ID, as in user:alice; {text!r} has no colon.")
    return {"kind": kind, "id": name}


def _no_call(sentence: str) -> Refused:
    return Refused("no_call", [sentence])


def _told(explanation: Explanation, *, everything: bool) -> Iterator[str]:
    decision = explanation.decision
    tool = explanation.tool
    if explanation.namespace is not None:
        tool = f"{explanation.namespace} / {tool}"
    yield f"{escaped(tool)} {_value(explanation.args)} for {escaped(explanation.principal)}"
    verdict = str(decision.verdict)
    by = ", ".join(decision.matched_rules)
    yield f"{painted(verdict, _style(verdict))}{escaped(f' by {by}' if by else '')}"
    if decision.reason:
        yield f"  reason: {escaped(decision.reason)}"
    if explanation.final_args is not None:
        yield f"  arguments: {_value(explanation.final_args)}"
    for names in decision.approver_sets:
        yield f"  to be approved by: {escaped(', '.join(names)) or 'whoever the handler asks'}"
    for obligation in decision.obligations:
        yield f"  obligation: {escaped(obligation.id)}"
    yield ""
    yield from (escaped(sentence) for sentence in explanation.summary)
    for layer in explanation.layers:
        yield ""
        yield from _layer(layer, everything=everything)


def _layer(layer: LayerAnswer, *, everything: bool) -> Iterator[str]:
    name = f"Layer {escaped(layer.name)}, in" if layer.name else "In"
    yield f"{name} the order asked:"
    hidden = 0
    for rule in layer.rules:
        if rule.answer == "not asked" and not everything:
            hidden += 1
        else:
            yield from _rule(rule)
    if hidden:
        yield f"  ({hidden} not asked: the search had ended)"
    if layer.other_rules:
        yield f"  ({layer.other_rules} about other tools)"


def _rule(rule: RuleAnswer) -> Iterator[str]:
    where = ""
    if rule.place is not None:
        place = rule.place
        where = (
            f"  {place.file or ''}:{place.line}" if place.line is not None else f"  {place.path}"
        )
    yield (
        f"  {painted(f'{rule.answer:<9}', _style(rule.answer))} {escaped(rule.rule)} "
        f"({escaped(rule.verdict)}): {escaped(rule.outcome)}{escaped(where)}"
    )
    if rule.fault:
        yield f"      {escaped(rule.fault)}"
    for number, tree in enumerate(rule.readings):
        if len(rule.readings) > 1:
            yield f"      read as {'an allow' if number == 0 else 'a restriction'}:"
        yield from _condition(tree, 6)
    if rule.on_final:
        yield f"      of the rewritten arguments: {painted(rule.on_final, _style(rule.on_final))}"


def _condition(told: ConditionAnswer, indent: int) -> Iterator[str]:
    line = told.text
    if told.operand is not None:
        line += f" {_value(told.operand)}"
    if told.predicate:
        line = f"{told.predicate}: {line}"
    seen = ""
    if told.place is not None:
        seen = (
            "  (absent)"
            if told.absent
            else ""
            if told.seen is None
            else (f"  (is {_value(told.seen)})")
        )
    place = told.place
    where = f"  :{place.line}" if place is not None and place.line is not None else ""
    note = f"  {told.note}" if told.note and told.place is not None else ""
    answer = painted(f"{told.answer:<5}", _style(told.answer))
    yield f"{' ' * indent}{answer} {escaped(line)}{escaped(seen)}{escaped(note)}{where}"
    for part in told.parts:
        yield from _condition(part, indent + 2)


def _style(word: str) -> str:
    return _STYLES.get(word, "yellow")


def _value(value: Any) -> str:
    text = escaped(json.dumps(to_json(value), ensure_ascii=False))
    if len(text) <= _MOST_SHOWN:
        return text
    return f"{text[:_MOST_SHOWN]}... [{len(text) - _MOST_SHOWN} more characters]"
