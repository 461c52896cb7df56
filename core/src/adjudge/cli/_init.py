"""`adjudge init`: a first policy to change."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from adjudge.cli._output import complain, say

__all__ = ["TEMPLATE", "add"]

TEMPLATE = """\
# What this agent's tools may do. The first rule that matches decides; all else is denied.
# Check this file with: adjudge policy lint policy.yaml
version: 1

defaults:
  on_no_match: deny                    # a call that no rule speaks of
  on_missing_shadow: approve_required  # an irreversible tool that cannot be previewed

rules:
  # A secret never leaves, whatever else is allowed. Higher priorities are read first.
  - id: no-secrets
    priority: 100
    match:
      any_of:
        - args.path.matches: '(^|/)(\\.env|id_rsa|credentials)$'
        - args.text.matches: 'PRIVATE KEY'
    decision: deny
    reason: secrets stay where they are

  # Tools that declare the scope "read" run. Anything that changes something needs a rule below.
  - id: reading-is-allowed
    match:
      declared.scope.contains: read
    decision: allow

  # Deletions are previewed by the tool's shadow; nothing is deleted.
  - id: preview-deletions
    match:
      tool.starts_with: delete_
    decision: dry_run

  # Small payments run; larger ones wait for a person, who sees the exact arguments.
  - id: small-payments
    match:
      tool: pay
      args.amount.between: [0, 50]
    decision: allow

  - id: larger-payments-need-a-person
    match:
      tool: pay
      args.amount.gt: 50
    decision: approve_required
    reason: payments over 50 are approved by finance
    approvers: [finance]
    timeout_seconds: 900

  # Arguments can be rewritten: searches are held to the first 20 results.
  - id: bounded-searches
    match:
      tool: search
    decision: transform
    transform:
      path: args.limit
      set: 20
"""


def add(commands: Any) -> None:
    """Add the subcommand."""
    parser = commands.add_parser("init", help="write a commented policy to start from")
    parser.add_argument(
        "path", nargs="?", default="policy.yaml", help="a file that is not there yet, or a folder"
    )
    parser.set_defaults(run=_init)


def _init(options: argparse.Namespace) -> int:
    path = Path(options.path)
    if path.is_dir():
        path = path / "policy.yaml"
    try:
        with path.open("x", encoding="utf-8", newline="\n") as file:
            file.write(TEMPLATE)
    except FileExistsError:
        complain(f"adjudge: {path} is there already and is left as it is; give another path.")
        return 2
    except OSError as error:
        complain(f"adjudge: {path} cannot be written: {error.strerror or error}.")
        return 2
    say(f"wrote {path}; check it with: adjudge policy lint {path}")
    return 0
