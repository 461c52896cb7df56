"""Previews for tools that people often write: files, HTTP, shell commands and SQL.

Each is an async function with the arguments of such a tool, to be given as its shadow. It describes
what the call would do, out of the arguments and of what can be seen without touching anything: it
writes nothing, connects nowhere, and runs no command and no statement. What it says of a command or
a statement is read off the text, for a person to look at; no policy should rest on it.
"""

from adjudge.shadows._filesystem import delete_file_shadow, write_file_shadow
from adjudge.shadows._http import http_shadow
from adjudge.shadows._shell import shell_shadow
from adjudge.shadows._sql import sql_shadow

__all__ = [
    "delete_file_shadow",
    "http_shadow",
    "shell_shadow",
    "sql_shadow",
    "write_file_shadow",
]
