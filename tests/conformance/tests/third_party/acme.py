"""A framework of somebody else's, as small as one can be: a model client, tools, a loop."""

import inspect
import json
import urllib.request
from dataclasses import dataclass, field

KINDS = {str: "string", float: "number"}


class OpenAI:
    """A client for one model, over Chat Completions."""

    def __init__(self, model, *, base_url):
        self.model, self.url = model, f"{base_url}/chat/completions"

    def answer(self, messages, tools):
        """Send the history and give the model's message and the tokens that it cost."""
        offers = [{"type": "function", "function": tool.offer} for tool in tools]
        body = {"model": self.model, "messages": messages, "tools": offers}
        request = urllib.request.Request(self.url, json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=30) as reply:
            whole = json.load(reply)
        return whole["choices"][0]["message"], whole["usage"]["total_tokens"]


@dataclass
class Tool:
    """A function that the model may call; `run` gets the call's id and its argument text."""

    offer: dict
    run: object


def tool(function):
    """Make a tool of a function, plain or coroutine."""
    given = inspect.signature(function).parameters.values()
    schema = {
        "type": "object",
        "properties": {
            each.name: {"type": KINDS.get(each.annotation)} if each.annotation in KINDS else {}
            for each in given
        },
        "required": [each.name for each in given if each.default is each.empty],
        "additionalProperties": False,
    }
    for each in given:
        if each.default is not each.empty:
            schema["properties"][each.name]["default"] = each.default

    async def run(call_id, text):
        try:
            args = json.loads(text)
            inspect.signature(function).bind(**args)
        except (ValueError, TypeError):
            return "bad arguments"
        told = function(**args)
        return await told if inspect.isawaitable(told) else told

    offer = {"name": function.__name__, "description": function.__doc__, "parameters": schema}
    return Tool(offer, run)


@dataclass
class Run:
    """What a run came to."""

    messages: list
    text: str = ""
    usage: int = 0


@dataclass
class Agent:
    """A model with tools, which it may call until it answers."""

    model: OpenAI
    prompt: str
    tools: list = field(default_factory=list)

    async def run(self):
        """Go on until the model calls no more tools."""
        run = Run([{"role": "user", "content": self.prompt}])
        while True:
            message, tokens = self.model.answer(run.messages, self.tools)
            run.usage += tokens
            run.messages.append(message)
            if not message.get("tool_calls"):
                run.text = message["content"]
                return run
            for asked in message["tool_calls"]:
                text = await self._call(asked["id"], **asked["function"])
                run.messages.append({"role": "tool", "tool_call_id": asked["id"], "content": text})

    async def _call(self, call_id, name, arguments):
        for tool in self.tools:
            if tool.offer["name"] == name:
                try:
                    told = await tool.run(call_id, arguments)
                except ValueError as error:
                    return f"failed: {error}"
                return told if isinstance(told, str) else json.dumps(told)
        return f"there is no tool {name}"
