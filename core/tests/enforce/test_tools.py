"""Tools, their shadows, and sets of them."""

import functools
import pickle

import pytest

from adjudge._enforcement.tools import ToolDef, ToolSet, shadow, tool
from adjudge._types import ToolMetadata
from adjudge.errors import ToolDefinitionError


@tool(cost="high", reversible=False, scope=("money:write",), labels=("bank",))
async def pay(to: str, amount: int = 5):
    """Pay somebody.

    At once.
    """
    return f"{to}:{amount}"


def test_a_decorated_function_stays_what_it_was():
    """The function itself is untouched, its definition stands beside it."""
    definition = pay.__adjudge_tool__

    assert definition.fn is pay
    assert (definition.name, definition.description) == ("pay", "Pay somebody.\n\nAt once.")
    assert definition.metadata == ToolMetadata(
        cost="high", reversible=False, scope=("money:write",), labels=("bank",)
    )


def test_a_bare_tool_is_reversible():
    """Clause 17: `@tool()` says nothing bad of a tool."""

    @tool(name="other", description="Does.")
    def plain():
        pass

    assert plain.__adjudge_tool__.metadata == ToolMetadata()
    assert (plain.__adjudge_tool__.name, plain.__adjudge_tool__.description) == ("other", "Does.")


@pytest.mark.parametrize("spelling", ["method", "function"])
def test_a_shadow_keeps_everything_else_that_was_declared(spelling):
    """`.shadow` and `shadow()` are the same, and lose no field."""

    @tool(cost="high", isolation="vm", labels=("x",))
    def wipe(path):
        return path

    before = wipe.__adjudge_tool__

    @(wipe.shadow if spelling == "method" else shadow(wipe))
    def preview(path):
        return "would"

    after = wipe.__adjudge_tool__

    assert after.shadow_fn is preview
    assert after.metadata == ToolMetadata(
        cost="high", isolation="vm", labels=("x",), has_shadow=True
    )
    assert (after.name, after.fn) == (before.name, before.fn)


async def async_generator():
    """Yield."""
    yield 1


def generator():
    """Yield."""
    yield 1


class CallsGenerator:
    """An object whose call is an async generator."""

    async def __call__(self):
        """Yield."""
        yield 1


@pytest.mark.parametrize(
    "function",
    [async_generator, generator, CallsGenerator(), functools.partial(async_generator)],
    ids=["async", "sync", "object", "partial"],
)
def test_generators_are_refused(function):
    """Fault X008: a body that runs after the call was recorded as done is no tool."""
    with pytest.raises(ToolDefinitionError, match="generator"):
        tool(name="t")(function)


def test_a_generator_is_refused_as_a_shadow_too():
    """A preview is a value."""

    @tool()
    def wipe():
        pass

    with pytest.raises(ToolDefinitionError, match="generator"):
        wipe.shadow(generator)


def test_positional_only_parameters_are_refused():
    """A model names its arguments."""
    with pytest.raises(ToolDefinitionError, match="position"):

        @tool()
        def bad(x, /):
            pass


def test_a_second_decoration_is_refused():
    """The second would silently replace what the first declared."""
    with pytest.raises(ToolDefinitionError):
        tool()(pay)


@pytest.mark.parametrize("scope", ["files:read", [1], 7])
def test_a_scope_is_a_tuple_of_texts(scope):
    """A bare text would be a scope for each letter."""
    with pytest.raises(ToolDefinitionError):
        tool(scope=scope)(lambda: None)


@pytest.mark.parametrize(
    "declared",
    [
        {"cost": "free"},
        {"reversible": "no"},
        {"reversible": None},
        {"blast_radius_hint": "big"},
        {"blast_radius_hint": True},
        {"isolation": 3},
    ],
    ids=str,
)
def test_metadata_of_the_wrong_kind_is_refused(declared):
    """Law 4: `reversible="no"` is a text that is true, and would pass for reversible."""
    with pytest.raises(ToolDefinitionError, match=next(iter(declared))):
        tool(**declared)(lambda: None)


def test_without_parentheses_the_error_says_what_to_write():
    """`@tool` alone is a usual slip."""
    with pytest.raises(ToolDefinitionError, match=r"write `@tool\(\)`"):

        @tool
        def bad():
            pass


def test_a_class_is_no_tool():
    """Calling a class makes an object, and runs nothing."""
    with pytest.raises(ToolDefinitionError):

        @tool()
        class Bad:
            pass


def test_two_tools_of_one_name_are_an_error():
    """Fault X032: neither may silently take the other's place."""
    other = ToolDef("pay", "", lambda to: to)

    with pytest.raises(ToolDefinitionError, match="pay"):
        ToolSet.from_functions(pay).with_tool(other)
    with pytest.raises(ToolDefinitionError):
        ToolSet.from_functions(pay) | ToolSet([other])


def test_a_lone_function_is_no_list_of_tools():
    """The usual slip is `ToolSet(pay)` for `ToolSet([pay])`."""
    with pytest.raises(ToolDefinitionError, match=r"ToolSet\(\[\.\.\.\]\)"):
        ToolSet(tool()(lambda: None))


def test_what_is_no_tool_cannot_be_in_a_set():
    """A function without `@tool` is refused by name."""

    def plain():
        pass

    with pytest.raises(ToolDefinitionError, match="plain"):
        ToolSet.from_functions(plain)


def test_sets_are_values():
    """Adding and removing give new sets."""
    one = ToolSet.from_functions(pay)
    note = ToolDef("note", "", lambda text: text)

    two = one.with_tool(note)

    assert (one.names, two.names, len(two)) == (("pay",), ("pay", "note"), 2)
    assert two.without_tool("pay").names == ("note",)
    assert one.union(ToolSet([note])).names == two.names
    assert two.get("note") is note
    assert ("pay" in one, "note" in one) == (True, False)
    with pytest.raises(KeyError):
        one.get("note")
    with pytest.raises(KeyError):
        one.without_tool("note")


def test_what_is_derived_of_a_set_is_made_once():
    """Each set keeps what each function made of it, and a set with other tools has its own."""
    made = []

    def names(tools):
        made.append(tools.names)
        return list(tools.names)

    one = ToolSet.from_functions(pay)
    other = one.with_tool(ToolDef("note", "", lambda text: text))

    assert one.derived(names) is one.derived(names)
    assert ["pay", "note"] == other.derived(names)
    assert [("pay",), ("pay", "note")] == made


def test_what_cannot_be_derived_is_tried_again():
    """An exception is the caller's, and is not kept."""
    answers = iter([ValueError("not yet"), "now"])

    def make(tools):
        answer = next(answers)
        if isinstance(answer, ValueError):
            raise answer
        return answer

    tools = ToolSet.from_functions(pay)

    with pytest.raises(ValueError, match="not yet"):
        tools.derived(make)
    assert "now" == tools.derived(make)


def test_a_set_is_copied_without_what_was_derived():
    """What was derived need not be anything that can be pickled."""
    tools = ToolSet.from_functions(pay)
    tools.derived(lambda tools: lambda: tools)

    again = pickle.loads(pickle.dumps(tools))

    assert (tools.names, tools.get("pay")) == (again.names, again.get("pay"))


def test_a_definition_must_agree_with_itself():
    """`has_shadow` without a shadow is a mistake that a policy would believe."""
    with pytest.raises(ToolDefinitionError, match="has_shadow"):
        ToolSet([ToolDef("t", "", lambda: None, None, ToolMetadata(has_shadow=True))])


class Desk:
    """Tools that are methods."""

    def __init__(self, name):
        self.name = name

    @tool()
    async def who(self, greeting: str = "hi"):
        """Say who."""
        return f"{greeting} {self.name}"

    @who.shadow
    async def preview(self, greeting: str):
        """Say who would."""
        return f"would {greeting} {self.name}"


class AsyncCall:
    """A tool that is an object."""

    async def __call__(self, x: int):
        """Double."""
        return x * 2


async def add(a: int, b: int):
    """Add."""
    return a + b


def logged(function):
    """Wrap a function as usual."""

    @functools.wraps(function)
    async def wrapper(*args, **kwargs):
        return f"logged {await function(*args, **kwargs)}"

    return wrapper


CALLABLES = {
    "partial": (tool(name="t")(functools.partial(add, b=2)), {"a": 1}, 3),
    "object": (tool(name="t")(AsyncCall()), {"x": 4}, 8),
    "method": (Desk("ana").who, {}, "hi ana"),
    "wrapped": (logged(pay), {"to": "x"}, "logged x:5"),
    "cached": (tool(name="t")(functools.cache(lambda x: x)), {"x": 1}, 1),
    "sync-to-async": (tool(name="t")(lambda a, b: add(a, b)), {"a": 1, "b": 2}, 3),
    "keywords": (tool(name="t")(lambda **kwargs: kwargs), {"any": 1}, {"any": 1}),
}


@pytest.mark.parametrize("name", CALLABLES)
async def test_callables_of_every_shape_run_and_are_awaited(bench, check, name):
    """Fault X008: an awaitable result is awaited, and what was handed over is what runs."""
    function, args, expected = CALLABLES[name]
    guard = bench.guard({"decision": "allow"}, tools=[function])

    call = await check(guard, guard.tools.names[0], args)

    assert call.result.value == expected


async def test_the_shadow_of_a_method_knows_its_object(bench, check):
    """A method's shadow is a method."""
    guard = bench.guard({"decision": "dry_run"}, tools=[Desk("ana").who])

    call = await check(guard, "who", {})

    assert call.result.value == "would hi ana"


async def test_an_async_failure_that_comes_late_is_a_failure(bench, check):
    """Fault X008: success is recorded after the body has ended, not before."""
    import asyncio

    @tool()
    async def late():
        await asyncio.sleep(0.01)
        raise ValueError("late")

    guard = bench.guard({"decision": "allow"}, tools=[late])

    call = await check(guard, "late", {})

    assert call.result.error == "ValueError: late"
    assert call.result.duration_ms >= 9
    assert bench.terminals == ["action.failed"]
