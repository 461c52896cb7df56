"""`adjudge graph`: check a graph's file, and draw it.

Exit codes: 0 checked and good, 1 the file is no graph, 2 bad usage or a file that cannot be read or
written. What is wrong is said on stderr.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from adjudge_runtime.graph import GraphCompileError, GraphSpec, load_graph_file
from adjudge_runtime.graph._mermaid import to_mermaid
from adjudge_runtime.graph._svg import to_svg

__all__ = ["configure"]

_DRAWN = {"mermaid": to_mermaid, "svg": to_svg}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `adjudge graph`."""
    parser.description = "Check a handoff graph, and draw it."
    commands = parser.add_subparsers(dest="graph_command", required=True, metavar="COMMAND")
    check = commands.add_parser("check", help="compile a graph's file and say what is in it")
    check.add_argument("file", metavar="FILE", help="the graph, in YAML, JSON or TOML")
    check.add_argument(
        "--nodes", metavar="NAMES", help="the nodes that there are, such as triage,fixer"
    )
    check.set_defaults(run=_check)
    render = commands.add_parser("render", help="draw a graph as Mermaid text or as SVG")
    render.add_argument("file", metavar="FILE", help="the graph, in YAML, JSON or TOML")
    render.add_argument("--format", choices=sorted(_DRAWN), default="mermaid")
    render.add_argument("-o", "--output", metavar="OUT", help="where to write it (stdout)")
    render.set_defaults(run=_render)


def _check(options: argparse.Namespace) -> int:
    nodes = None if options.nodes is None else options.nodes.split(",")
    spec = _loaded(options.file, nodes)
    if isinstance(spec, int):
        return spec
    sources = {edge.source for edge in spec.edges}
    branches = {name for edge in spec.edges if edge.join is not None for name in edge.to}
    ends = [name for name in spec.nodes if name not in sources | branches]
    _say(
        f"{options.file}: good; starts at {spec.start}, {len(spec.nodes)} nodes "
        f"({', '.join(spec.nodes)}), {len(spec.edges)} edges, "
        f"max_transitions {spec.max_transitions}"
    )
    if ends:
        _say(f"{options.file}: the work ends after {', '.join(ends)}, which no edge leaves")
    return 0


def _render(options: argparse.Namespace) -> int:
    spec = _loaded(options.file, None)
    if isinstance(spec, int):
        return spec
    picture = _DRAWN[options.format](spec)
    if options.output is None:
        sys.stdout.write(picture)
        return 0
    try:
        Path(options.output).write_text(picture, encoding="utf-8")
    except OSError as error:
        _complain(f"adjudge graph: {options.output} cannot be written: {error}")
        return 2
    return 0


def _loaded(file: str, nodes: list[str] | None) -> GraphSpec | int:
    """Give the graph of a file, or the exit code that says why there is none."""
    try:
        return load_graph_file(file, nodes=nodes)
    except OSError as error:
        _complain(f"adjudge graph: {file} cannot be read: {error}")
        return 2
    except GraphCompileError as error:
        _complain(str(error))
        return 1


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")


def _complain(text: str) -> None:
    sys.stderr.write(text + "\n")
