"""Governs the tool calls of the OpenAI Agents SDK.

`govern` puts function tools, lists of tools and agents under a `ToolGuard`;
`governed_function_tools` makes the SDK's tools out of a `ToolSet`. Every verdict is the guard's:
this package only translates.
"""

from adjudge_openai_agents._govern import govern, governed_function_tools

__all__ = ["govern", "governed_function_tools"]
