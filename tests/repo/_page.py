"""Runs one documentation page: every fenced block of it, in order, in the current folder.

`python _page.py PAGE.md`. Python blocks share one namespace, as if the reader had typed them into
one file. `bash` blocks run in the same folder. `yaml`, `json` and `toml` blocks must parse, and one
that has `rules:` must compile as a policy. A block with `title="NAME"` after its language is saved
under that name first. Output, transcripts and commands that need a network are `text` or `console`.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

__all__ = ["ALL_RAN", "NOT_RUN", "RUN", "Block", "blocks", "main"]

ALL_RAN = "every block ran"
RUN = frozenset({"python", "bash", "yaml", "json", "toml"})
NOT_RUN = frozenset({"text", "console", "mermaid"})

_FENCE = re.compile(r"^(?P<indent>\s*)(?P<fence>`{3,}|~{3,})(?P<info>.*)$")
_TITLE = re.compile(r'title="(?P<name>[^"]+)"')


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block; `line` is the line of its first line of text, from 1."""

    language: str
    title: str | None
    line: int
    text: str


def blocks(page: str) -> Iterator[Block]:
    """Yield the fenced blocks of a page in order; raises ValueError for one that never ends."""
    lines = iter(enumerate(page.splitlines(), start=1))
    for number, line in lines:
        opening = _FENCE.match(line)
        if opening is None:
            continue
        closing = opening["indent"] + opening["fence"]
        body = []
        for _, inner in lines:
            if inner.rstrip() == closing:
                break
            body.append(inner.removeprefix(opening["indent"]))
        else:
            raise ValueError(f"line {number}: the fence is never closed")
        language, _, rest = opening["info"].strip().partition(" ")
        title = _TITLE.search(rest)
        yield Block(language, title and title["name"], number + 1, "\n".join([*body, ""]))


def main(page: Path) -> None:
    """Run every block of the page; the first failure ends the process with a traceback."""
    reader = ModuleType("__main__")
    reader.__file__ = str(page)
    sys.modules["__main__"] = reader
    # A block may import a file that an earlier one saved, as a script in this folder could.
    sys.path.insert(0, str(Path.cwd()))
    for block in blocks(page.read_text(encoding="utf-8")):
        print(f"{page.name}:{block.line}: {block.language}", flush=True)
        if block.title:
            Path(block.title).parent.mkdir(parents=True, exist_ok=True)
            Path(block.title).write_text(block.text, encoding="utf-8")
        if block.language == "python":
            padded = "\n" * (block.line - 1) + block.text
            exec(compile(padded, str(page), "exec"), vars(reader))
        elif block.language == "bash":
            subprocess.run(["bash", "-euo", "pipefail", "-c", block.text], check=True)
        elif block.language in RUN:
            _check_data(block)
        elif block.language not in NOT_RUN:
            known = ", ".join(sorted(RUN | NOT_RUN))
            raise ValueError(f"unknown block language {block.language!r}; write one of {known}")
    print(ALL_RAN)


def _check_data(block: Block) -> None:
    value = _parse(block)
    if isinstance(value, dict) and "rules" in value:
        from adjudge import load_policy_file

        with TemporaryDirectory() as folder:
            policy = Path(folder, f"policy.{block.language}")
            policy.write_text(block.text, encoding="utf-8")
            load_policy_file(policy)


def _parse(block: Block) -> Any:
    if block.language == "json":
        return json.loads(block.text)
    if block.language == "toml":
        return tomllib.loads(block.text)
    import yaml  # only pages that show YAML need it

    return yaml.safe_load(block.text)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
