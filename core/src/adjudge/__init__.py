"""Governs the tool calls of AI agents: decide, enforce, record."""
