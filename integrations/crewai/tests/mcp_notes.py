"""A real MCP server, which writes what it ran to a file: `mcp_notes.py FILE [TRANSPORT PORT]`."""

import sys
from pathlib import Path

from mcp.server.fastmcp import FastMCP

server = FastMCP("notes", port=int(sys.argv[3]) if len(sys.argv) > 3 else 0)


@server.tool()
def erase(name: str, hard: bool = False) -> str:
    """Erase a note."""
    with Path(sys.argv[1]).open("a") as log:
        log.write(f"erase {name} {hard}\n")
    return f"erased {name}"


if __name__ == "__main__":
    server.run(sys.argv[2] if len(sys.argv) > 2 else "stdio")
