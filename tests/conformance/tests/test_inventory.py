"""The inventory and the checklist: nothing new in a framework goes unseen."""

from adjudge_conformance.inventory import CHECKLIST, public_callables, uncovered, unlisted


class Tool:
    """A framework's tool class, as an inventory sees it."""

    label = "text"

    def invoke(self):
        """Stand for one of a framework's methods."""

    async def ainvoke(self):
        """Stand for one of a framework's methods."""

    def __call__(self):
        """Stand for one of a framework's methods."""

    def _private(self): ...

    @property
    def schema(self):
        """Stand for one of a framework's methods."""


REACHES = {"Tool": {"invoke": "allow.runs-once", "ainvoke": "allow.runs-once"}}
HARMLESS = {"Tool": {"__call__": "builds a copy"}}
DRIVEN = {"allow.runs-once"}


def test_public_callables_are_what_a_user_can_call():
    """Methods and `__call__` count; private names, properties and plain values do not."""
    assert {"invoke", "ainvoke", "__call__"} == public_callables(Tool)


def test_inherited_callables_count():
    """Law 3: what a class has from its base reaches a body as well."""

    class Derived(Tool):
        def batch(self): ...

    assert {"invoke", "ainvoke", "__call__", "batch"} == public_callables(Derived)


def test_whole_inventory_has_no_problem():
    """Law 3: every public callable is listed once, and what reaches a body is driven."""
    assert [] == unlisted([Tool], reaches=REACHES, harmless=HARMLESS, driven=DRIVEN)


def test_new_callable_is_a_problem():
    """Law 3: a callable that nobody has looked at fails the inventory."""
    assert ["Tool.__call__ is not listed"] == unlisted(
        [Tool], reaches=REACHES, harmless={}, driven=DRIVEN
    )


def test_undriven_callable_is_a_problem():
    """A callable that is said to be driven by a test that does not exist fails."""
    assert 2 == len(unlisted([Tool], reaches=REACHES, harmless=HARMLESS, driven=()))


def test_callable_listed_twice_is_a_problem():
    """A callable cannot both reach a body and reach none."""
    both = {"Tool": {**HARMLESS["Tool"], "invoke": "reads"}}

    assert ["Tool.invoke is listed twice"] == unlisted(
        [Tool], reaches=REACHES, harmless=both, driven=DRIVEN
    )


def test_checklist_is_covered_by_tests_and_reasons():
    """A bypass is driven, or a sentence says that the framework has no such thing."""
    driven = set(CHECKLIST) - {"cache", "batch"}

    assert [] == uncovered(
        driven, not_there={"cache": "it has no cache", "batch": "it takes one input at a time"}
    )


def test_missing_bypass_is_a_problem():
    """A checklist entry that nobody speaks of fails."""
    assert [f"cache is not covered: {CHECKLIST['cache']}"] == uncovered(set(CHECKLIST) - {"cache"})


def test_bypass_cannot_be_driven_and_absent():
    """What is driven is there."""
    problems = uncovered(set(CHECKLIST), not_there={"cache": "it has no cache"})

    assert ["cache is both driven and absent"] == problems
