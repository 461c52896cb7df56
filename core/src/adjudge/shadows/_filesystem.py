"""Previews of writing and deleting a file; they read the file's status and nothing else."""

from __future__ import annotations

import os
import stat
from typing import Any

__all__ = ["delete_file_shadow", "write_file_shadow"]

_SHOWN = 200


async def write_file_shadow(path: str, content: str) -> dict[str, Any]:
    """Say what writing `content` to `path` would create or overwrite; sizes are bytes of UTF-8."""
    there = _status(path)
    return {
        "would_write": path,
        "bytes": len(content.encode("utf-8", "surrogatepass")),
        "overwrites": there,
        "begins": content[:_SHOWN],
        "shown_in_full": len(content) <= _SHOWN,
    }


async def delete_file_shadow(path: str) -> dict[str, Any]:
    """Say what deleting `path` would remove; a symbolic link is looked at, not followed."""
    return {"would_delete": path, "deletes": _status(path)}


def _status(path: str) -> dict[str, Any] | None:
    """Describe what is at the path, None where nothing is."""
    try:
        found = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        return {"kind": "unknown", "error": f"{type(error).__name__}: {error}"}
    return {"kind": _kind(found.st_mode), "bytes": found.st_size}


def _kind(mode: int) -> str:
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "directory"
    return "symbolic link" if stat.S_ISLNK(mode) else "special file"
