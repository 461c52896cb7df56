"""The policies that lynx ships as examples, and calls that go at what they test.

They are in its source distribution and not in its wheel, so pip downloads that; nothing of it is
kept here.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from differential.lynx_leaves import split
from hypothesis import strategies as st

from adjudge._types import ActionRequest, ExecutionContext, Principal, ToolMetadata
from adjudge._values import freeze

RELEASE = "lynx-agent==2.11.1"


def download(folder: Path) -> Path:
    """Fetch and unpack lynx's source distribution; give its folder."""
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "download", RELEASE),
            *("--no-deps", "--no-binary", ":all:", "--dest", str(folder)),
            *("--quiet", "--disable-pip-version-check"),
        ],
        check=True,
    )
    (archive,) = folder.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        opened.extractall(folder, filter="data")
    return folder / archive.name.removesuffix(".tar.gz")


def shipped_policies(folder: Path) -> dict[str, str]:
    """Give the text of every policy in the examples, README and pages, by where it stands."""
    found: dict[str, str] = {}
    for path in sorted(
        [*folder.glob("examples/**/*"), *folder.glob("docs/*.md"), folder / "README.md"]
    ):
        for number, text in enumerate(_texts(path)):
            if _is_policy(text):
                found[f"{path.relative_to(folder)}#{number}"] = text
    return found


def _texts(path: Path) -> Iterator[str]:
    if path.suffix in (".yaml", ".yml"):
        yield path.read_text()
    elif path.suffix == ".py":
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value
    elif path.suffix == ".md":
        yield from re.findall(r"```ya?ml\n(.*?)```", path.read_text(), re.DOTALL)


def _is_policy(text: str) -> bool:
    if "rules:" not in text:
        return False
    try:
        read = yaml.safe_load(text)
    except yaml.YAMLError:
        return False
    return isinstance(read, Mapping) and isinstance(read.get("rules"), list)


def _leaves(node: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(node, list):
        for item in node:
            yield from _leaves(item)
    elif isinstance(node, Mapping):
        for key, value in node.items():
            if key in ("all_of", "any_of", "not"):
                yield from _leaves(value)
            else:
                yield key, value


def _values_near(operator: str, operand: Any) -> st.SearchStrategy[Any]:
    """Give values that this test may or may not hold of."""
    if operator == "matches":
        return st.from_regex(operand, alphabet=st.characters(max_codepoint=126))
    if operator in ("gt", "ge", "lt", "le", "between", "not_between"):
        ends = operand if isinstance(operand, list) else [operand]
        if all(isinstance(end, int | float) for end in ends):
            return st.sampled_from([end + step for end in ends for step in (-1, 0, 1)])
        return st.sampled_from(ends)
    if operator in ("in", "contains_any", "contains_all"):
        return st.sampled_from(operand) | st.just(operand)
    if operator == "contains":
        return st.sampled_from([operand, [operand], []])
    return st.just(operand)


ODD = [None, "", "other", 0, -1, True, [], ["other"], {}, "1000", [1000]]


@st.composite
def calls_for(draw: st.DrawFn, policy: Mapping[str, Any]) -> ActionRequest:
    """Draw a call that goes at the tests of a policy."""
    matches = [rule.get("match", {}) for rule in policy["rules"]]
    near: dict[str, list[st.SearchStrategy[Any]]] = {}
    for key, operand in _leaves([*matches, *(policy.get("predicates") or {}).values()]):
        path, operator = split(key)
        near.setdefault(path, []).append(_values_near(operator, operand))
    values = {
        path: draw(st.one_of(*strategies, *strategies, st.sampled_from(ODD)))
        for path, strategies in sorted(near.items())
        if draw(st.integers(0, 9)) > 0
    }
    return _request(draw, values)


def _request(draw: st.DrawFn, values: dict[str, Any]) -> ActionRequest:
    args: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    for path, value in values.items():
        for prefix, target in (("args.", args), ("context.extra.", extra)):
            if path.startswith(prefix):
                *parents, last = path.removeprefix(prefix).split(".")
                for parent in parents:
                    target = target.setdefault(parent, {})
                if isinstance(target, dict):
                    target[last] = value
    scope = values.get("declared.scope", ())
    environment = values.get("context.environment")
    tool = values.get("tool")
    return ActionRequest(
        tool=tool if isinstance(tool, str) else "other",
        args=freeze(args),
        declared=ToolMetadata(
            cost=values.get("declared.cost", "low"),
            reversible=draw(st.booleans()),
            scope=tuple(scope) if isinstance(scope, list | tuple) else (str(scope),),
            has_shadow=draw(st.booleans()),
        ),
        context=ExecutionContext(
            principal=Principal(
                draw(st.sampled_from(["user", "agent", "service"])),
                str(values.get("context.principal.id", "u1")),
            ),
            environment=environment if isinstance(environment, str) else "dev",
            extra=freeze(extra),
        ),
    )
