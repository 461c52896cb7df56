"""A real MCP server on standard input and output, which writes what it ran to a file."""

import sys
from pathlib import Path

from mcp.server.fastmcp import FastMCP

server = FastMCP("notes")


@server.tool()
def erase(name: str, hard: bool = False) -> str:
    """Erase a note."""
    with Path(sys.argv[1]).open("a") as log:
        log.write(f"erase {name} {hard}\n")
    return f"erased {name}"


if __name__ == "__main__":
    server.run("stdio")
