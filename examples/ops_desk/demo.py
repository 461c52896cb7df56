"""Run the operations desk under every framework, each in its own environment, and merge the rows.

Shows: the same policy, the same proposals and the same outcome in each framework. Needs: tox
(frameworks pin each other's dependencies apart, so each has an environment of its own).

    python demo.py [--framework NAME|all] [--json PATH] [--live --model NAME]

A framework that was asked for and gives no row fails the demo.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent


def frameworks() -> list[str]:
    """Name the frameworks that have a runner: one file each."""
    files = (HERE / "frameworks").glob("*.py")
    return sorted(file.stem.replace("_", "-") for file in files if file.stem != "__init__")


def run_one(name: str, out: Path, rest: list[str]) -> dict[str, Any] | None:
    """Run one framework in its own tox environment and read the row that it wrote."""
    command = [sys.executable, "-m", "tox", "run", "-q", "-e", f"{name}-demo", "--"]
    subprocess.run(
        [*command, "--framework", name, "--json", str(out), *rest], cwd=ROOT, check=False
    )
    return json.loads(out.read_text()) if out.exists() else None


def main(argv: list[str] | None = None) -> int:
    """Run what was asked for; exit 0 only if every framework did what the policy says."""
    parser = argparse.ArgumentParser(description="The operations desk under every framework.")
    parser.add_argument("--framework", choices=[*frameworks(), "all"], default="all")
    parser.add_argument("--json", type=Path, help="write all rows to this file")
    options, rest = parser.parse_known_args(argv)
    wanted = frameworks() if options.framework == "all" else [options.framework]
    rows: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory(prefix="ops-desk-rows-") as folder:
        for name in wanted:
            row = run_one(name, Path(folder) / f"{name}.json", rest)
            if row is not None:
                rows[name] = row
    if options.json:
        options.json.write_text(json.dumps(list(rows.values()), indent=1))
    print()
    failed = 0
    for name in wanted:
        if name not in rows:
            print(f"{name}: NO ROW; it was asked for and did not report")
        elif rows[name]["problems"]:
            print(f"{name} {rows[name]['version']}: NOT as the policy says")
        else:
            print(f"{name} {rows[name]['version']}: as the policy says")
            continue
        failed += 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
