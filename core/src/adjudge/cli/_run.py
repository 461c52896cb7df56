"""`adjudge run`: import a script and run its async `main()`."""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import inspect
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

from adjudge.cli._output import complain

__all__ = ["add"]


def add(commands: Any) -> None:
    """Add the subcommand."""
    parser = commands.add_parser("run", help="run the async main() of a Python script")
    parser.add_argument("script", metavar="SCRIPT")
    parser.add_argument("args", nargs=argparse.REMAINDER, help="the script's own arguments")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    """Exit with 0 if `main()` returned, 1 if it or the import raised, 2 if there is none."""
    script = Path(options.script).absolute()
    if not script.is_file():
        complain(f"adjudge: {options.script} is no file.")
        return 2
    path, argv = list(sys.path), list(sys.argv)
    sys.path.insert(0, str(script.parent))
    sys.argv[:] = [options.script, *options.args]
    try:
        main = getattr(_imported(script), "main", None)
        if not inspect.iscoroutinefunction(main):
            complain(f"adjudge: {options.script} has no `async def main()`; write one.")
            return 2
        asyncio.run(main())
    except Exception:
        complain(traceback.format_exc().rstrip("\n"))
        return 1
    finally:
        sys.path[:] = path
        sys.argv[:] = argv
    return 0


def _imported(script: Path) -> ModuleType:
    """Import under the script's own name where that is free, so that its tools can be found."""
    name = script.stem if script.stem not in sys.modules else f"adjudge_script_{script.stem}"
    spec = importlib.util.spec_from_file_location(name, script)
    if spec is None or spec.loader is None:
        raise ImportError(f"{script} is no Python script; its name must end in .py.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
