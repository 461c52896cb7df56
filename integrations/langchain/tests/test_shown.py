"""What of a call a model sends, and what is injected: asked once, and anew where it may differ."""

from typing import Annotated, Any

import pytest
from langchain_core.tools import BaseTool, InjectedToolArg, StructuredTool
from pydantic import BaseModel

from adjudge_langchain import govern


class Open(BaseModel):
    name: str
    host: str = "nobody"


class Hidden(BaseModel):
    name: str
    host: Annotated[str, InjectedToolArg] = "nobody"


def greet(name: str, host: str = "nobody") -> str:
    """Greet."""
    return f"{host} greets {name}"


def greeting(schema: type[BaseModel]) -> StructuredTool:
    """Make a tool of the schema."""
    return StructuredTool.from_function(greet, args_schema=schema)


def judged(record: Any) -> list[list[str]]:
    """Name the arguments of each call that a policy saw."""
    return [sorted(each["args"]) for each in record.bodies("step.proposed")]


@pytest.mark.parametrize("schemas", [(Open, Hidden), (Hidden, Open)], ids=["hides", "shows"])
def test_a_copy_with_another_schema(guard_of, record, schemas):
    """A copy of a governed tool is read by its own schema, and the tool by its own as before."""
    first = govern(greeting(schemas[0]), guard_of())
    other = first.model_copy(update={"args_schema": schemas[1]})

    for made in (first, other, first):
        made.invoke({"name": "a", "host": "b"})

    names = {Open: ["host", "name"], Hidden: ["name"]}
    assert [names[schemas[0]], names[schemas[1]], names[schemas[0]]] == judged(record)


def test_a_schema_that_is_exchanged(guard_of, record):
    """So is a governed tool that is given another schema."""
    made = govern(greeting(Open), guard_of())
    made.invoke({"name": "a", "host": "b"})

    made.args_schema = Hidden
    made.invoke({"name": "a", "host": "b"})

    assert [["host", "name"], ["name"]] == judged(record)


def test_a_class_that_says_by_itself(guard_of, record):
    """A class that has its own word of what is injected is asked at each call."""

    class Own(BaseTool):
        name: str = "own"
        description: str = "Greet."
        args_schema: type[BaseModel] = Open
        hides: bool = False

        def _filter_injected_args(self, tool_input: dict[str, Any]) -> dict[str, Any]:
            return {n: each for n, each in tool_input.items() if n != "host" or not self.hides}

        def _run(self, name: str, host: str = "nobody") -> str:
            return greet(name, host)

    made = govern(Own(), guard_of())
    for hides in (False, True):
        made.hides = hides
        made.invoke({"name": "a", "host": "b"})

    assert [["host", "name"], ["name"]] == judged(record)


def test_names_that_a_model_makes_up(guard_of, record):
    """However many there were, what is injected is known from what is not."""
    made = govern(greeting(Hidden), guard_of())
    for number in range(300):
        made.invoke({"name": "a", f"made_up_{number}": 1})

    made.invoke({"name": "a", "host": "b", "made_up": 1})

    assert ["name"] == judged(record)[-1]
