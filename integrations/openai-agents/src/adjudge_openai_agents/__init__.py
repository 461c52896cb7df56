"""Governs the tool calls of the OpenAI Agents SDK."""
