"""What it takes for a match to be true, false or in error: formulas over the answers of leaves.

A leaf is true, false or in error, and the connectives are Kleene's (clause 6), so "this match is
true" is a plain formula without negation over "this leaf answers one of these".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from adjudge.analysis._linting.conditions import ANY, ERROR, FALSE, TRUE, Condition, Steps
from adjudge.analysis._parts import Part, part_of
from adjudge.policy._match import Reading
from adjudge.policy._model import AnyOf, Leaf, Match, Path, Place

__all__ = ["ALWAYS", "NEVER", "OWN", "Answers", "Either", "Every", "Formula", "Formulas"]

OWN = "own namespace"
_PLACE = Place("")
_TOOL = Path("tool", (), "tool")
_NAMESPACE = Path("tool.namespace", (), "tool.namespace")
_OWN = Path(OWN, (), OWN)


@dataclass(frozen=True, slots=True)
class Answers:
    """A leaf gives one of the answers in a mask."""

    condition: Condition
    allowed: int


@dataclass(frozen=True, slots=True)
class Every:
    """Every part holds."""

    parts: tuple[Formula, ...]


@dataclass(frozen=True, slots=True)
class Either:
    """At least one part holds."""

    parts: tuple[Formula, ...]


Formula = Answers | Every | Either

ALWAYS = Every(())
NEVER = Either(())


class Formulas:
    """Makes formulas about one policy; with `tool`, about calls of that tool alone.

    `known` keeps the conditions that were made, for others who make formulas of the same parts.
    """

    def __init__(
        self,
        namespaces: Mapping[str, str],
        tool: str | None = None,
        *,
        known: dict[tuple[int, str], Condition] | None = None,
    ) -> None:
        self._namespaces = namespaces
        self._tool = tool
        self._known = {} if known is None else known

    def said(self, part: Part, allowed: int, root: str = ".") -> Formula:
        """Say that a part gives one of the answers in the mask; `root` is what `.` stands for."""
        if allowed in (0, ANY):
            return ALWAYS if allowed else NEVER
        if part.kind == "always":
            return ALWAYS if allowed & TRUE else NEVER
        if part.kind == "leaf":
            return self._leaf(part, allowed, root)
        if part.kind == "not":
            return self.said(part.parts[0], _turned(allowed), root)
        return self._combination(part, allowed, root)

    def _combination(self, part: Part, allowed: int, root: str) -> Formula:
        # All of them say TRUE for `all_of`; for `any_of` it is FALSE, turned round.
        united = TRUE if part.kind == "all_of" else FALSE
        settled = FALSE if united == TRUE else TRUE
        if allowed in (united, ANY & ~settled):
            return Every(tuple(self.said(each, allowed, root) for each in part.parts))
        if allowed in (settled, ANY & ~united):
            return Either(tuple(self.said(each, allowed, root) for each in part.parts))
        if allowed == ERROR:
            return Every(
                (
                    self.said(part, ANY & ~TRUE, root),
                    self.said(part, ANY & ~FALSE, root),
                )
            )
        return Either((self.said(part, TRUE, root), self.said(part, FALSE, root)))

    def _leaf(self, part: Part, allowed: int, root: str) -> Formula:
        leaf = part.match
        assert isinstance(leaf, Leaf)
        start = root if leaf.path.root == "." else leaf.path.root
        # A condition holds its part, so that no other part can come to have the same id.
        condition = self._known.get((id(part), root))
        if condition is None:
            condition = Condition(part, (start, *leaf.path.steps))
            self._known[id(part), root] = condition
        reading = part.reading
        if start != "tool" or not reading.in_permitting_position or reading.namespaced:
            return Answers(condition, allowed)
        # Clause 13: in permitting position a name means the tool in its own namespace.
        if allowed & FALSE:
            return Either((Answers(condition, allowed), self.in_own_namespace(FALSE)))
        return Every((Answers(condition, allowed), self.in_own_namespace(TRUE)))

    def in_own_namespace(self, allowed: int) -> Formula:
        """Say that the call's namespace is none, or the tool's own; or that it is not."""
        reading = Reading(False, self._namespaces)
        if self._tool is None:
            leaf = Leaf(_OWN, "eq", True, _PLACE)
            return Answers(Condition(Part("leaf", leaf, reading), (OWN,)), allowed)
        either: list[Match] = [Leaf(_NAMESPACE, "eq", None, _PLACE)]
        if self._tool in self._namespaces:
            own = self._namespaces[self._tool]
            either.append(Leaf(_NAMESPACE, "eq", own, _PLACE))
        return self.said(part_of(AnyOf(tuple(either)), reading), allowed)

    def of_tool(self) -> Formula:
        """Say which tool is called."""
        if self._tool is None:
            return ALWAYS
        return self.equal(_TOOL, self._tool)

    def equal(self, path: Path, value: object) -> Formula:
        """Say that the value at a path is this one."""
        part = Part("leaf", Leaf(path, "eq", value, _PLACE), Reading(False, self._namespaces))
        return Answers(Condition(part, (path.root, *path.steps)), TRUE)

    def present(self, path: Steps) -> Formula:
        """Say that there is a value at a path, without an error on the way."""
        root, steps = str(path[0]), path[1:]
        leaf = Leaf(Path(root, steps, root), "exists", True, _PLACE)
        return Answers(Condition(Part("leaf", leaf, Reading(False, self._namespaces)), path), TRUE)


def _turned(allowed: int) -> int:
    turned = allowed & ERROR
    if allowed & TRUE:
        turned |= FALSE
    if allowed & FALSE:
        turned |= TRUE
    return turned
