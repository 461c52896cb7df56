"""The integration under test: it governs every tool of an acme agent at its one door."""

from dataclasses import replace

from adjudge.integration import ProposedCall


def govern(agent, guard):
    """Give the agent tools whose every call goes through the guard."""

    def governed(tool):
        name, schema = tool.offer["name"], tool.offer["parameters"]

        async def run(call_id, text):
            async def execute(effective):
                return await tool.run(call_id, effective.text)

            call = ProposedCall(name, text, call_id=call_id, schema=schema, schema_is_enforced=True)
            done = await guard.govern_call(call, execute)
            return done.result.value if done.text is None else done.text

        return replace(tool, run=run)

    agent.tools = [governed(tool) for tool in agent.tools]
    return agent
