"""How long a policy of many rules takes to be read and compiled.

`python core/benchmarks/compiling.py` prints the seconds; with `--json docs/reference/speed.json`
the figures are put there, for `python tests/repo/_speed.py` to make the page of.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from peers import adjudge_policy

from adjudge import compile_policy

SIZES = (1_000, 10_000, 100_000)


def main() -> None:
    """Compile the same policies from each kind of source."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, metavar="RULES")
    parser.add_argument("--json", type=Path, metavar="FILE", help="put the figures into this file")
    options = parser.parse_args()
    found = {
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} CPUs",
        "sizes": list(options.sizes),
        "sources": list(_sources(options.sizes)),
    }
    if options.json is not None:
        report = json.loads(options.json.read_text("utf-8")) if options.json.exists() else {}
        report["compiling"] = found
        options.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


def _sources(sizes: list[int]) -> Iterator[dict[str, Any]]:
    kinds = [(source, "100 in all") for source in _FORMS] + [("dict", "one in each rule")]
    for source, patterns in kinds:
        seconds = []
        for size in sizes:
            policy = _policy(size, own_patterns=patterns != "100 in all")
            seconds.append(_seconds(_FORMS[source](policy), source))
        print(source, patterns, *(f"{each:.2f} s" for each in seconds), flush=True)
        yield {"source": source, "patterns": patterns, "seconds": seconds}


def _policy(size: int, *, own_patterns: bool) -> dict[str, Any]:
    policy = adjudge_policy(size)
    if own_patterns:
        for number, rule in enumerate(policy["rules"]):
            rule["match"]["args.to.matches"] = f"^acct{number}-[0-9]+$"
    return policy


def _yaml(policy: dict[str, Any]) -> str:
    """Write a policy as people do, in block style; PyYAML's own writer would take minutes."""
    lines = ["version: 1", "rules:"]
    for rule in policy["rules"]:
        lines += [f"  - id: {rule['id']}", "    match:"]
        lines += [f"      {key}: {json.dumps(value)}" for key, value in rule["match"].items()]
        lines += [f"    decision: {rule['decision']}"]
    return "\n".join(lines) + "\n"


_FORMS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "dict": lambda policy: policy,
    "json": json.dumps,
    "yaml": _yaml,
}


def _seconds(source: Any, form: str) -> float:
    gc.disable()  # as the commands of `adjudge` do while they load a policy
    begin = time.process_time()
    if form == "dict":
        compile_policy(source)
    else:
        compile_policy(source, format=form)
    seconds = time.process_time() - begin
    gc.enable()
    return seconds


if __name__ == "__main__":
    main()
