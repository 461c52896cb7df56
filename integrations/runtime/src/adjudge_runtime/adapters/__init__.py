"""Agents of other frameworks as the agent of `run_agent`.

A LangGraph graph proposes calls, which `run_agent` governs and runs. A CrewAI crew runs as a whole
and gives one answer: what it does inside is not seen here, and is governed by `adjudge-crewai` or
not at all, which the caller says.
"""

from __future__ import annotations

from adjudge_runtime.adapters._crewai import CrewAIAgent
from adjudge_runtime.adapters._langgraph import LangGraphAgent

__all__ = ["CrewAIAgent", "LangGraphAgent"]
