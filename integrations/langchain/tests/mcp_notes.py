"""A real MCP server on standard input and output, which writes what it ran to a file."""

import sys
from pathlib import Path

try:
    from mcp.server.mcpserver import MCPServer as Server
except ImportError:  # before 2.0
    from mcp.server.fastmcp import FastMCP as Server

server = Server("notes")


@server.tool()
def erase(name: str, hard: bool = False) -> str:
    """Erase a note."""
    with Path(sys.argv[1]).open("a") as log:
        log.write(f"erase {name} {hard}\n")
    return f"erased {name}"


@server.tool()
def fail(name: str) -> str:
    """Fail."""
    raise ValueError(f"no note {name}")


if __name__ == "__main__":
    server.run("stdio")
