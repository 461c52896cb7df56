"""`adjudge checkpoint`: vouch for a record as it is now, with a key."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import Any

from adjudge._enforcement.approvals import escaped
from adjudge.cli._output import complain, say, say_json
from adjudge.cli._refusing import refuse_usage
from adjudge.cli._verify import add_files, exit_code, fault_of, files_of

__all__ = ["add"]


def add(commands: Any) -> None:
    """Add the subcommand."""
    parser = commands.add_parser(
        "checkpoint", help="sign a checkpoint of a hash-chained record, or make a key for that"
    )
    add_files(parser, optional=True)
    parser.add_argument("--key", metavar="KEY.pem", help="the private key (Ed25519, PEM)")
    parser.add_argument(
        "--output", metavar="FILE", help="the file to append to (FILE.checkpoints by default)"
    )
    parser.add_argument(
        "--new-key",
        metavar="PATH",
        help="make a key: the private one at PATH, the public one at PATH.pub",
    )
    parser.add_argument("--json", action="store_true", help="print the checkpoint as JSON")
    parser.set_defaults(run=_checkpoint)


def _checkpoint(options: argparse.Namespace) -> int:
    wrong = _misused(options)
    if wrong is not None:
        refuse_usage(wrong)
    return _new_key(options) if options.new_key is not None else _sign(options)


def _misused(options: argparse.Namespace) -> str | None:
    if options.new_key is not None:
        if options.files or options.key or options.output or options.after or options.exact:
            return "--new-key makes a key and signs nothing; sign with a second command."
        return None
    if not options.files or options.key is None:
        return "Give the record and the key: adjudge checkpoint FILE... --key KEY.pem"
    if len(options.files) > 1 and options.output is None:
        return "Where there are several files, say which one to append to: --output FILE"
    return None


def _new_key(options: argparse.Namespace) -> int:
    from adjudge._record.signing import new_signing_key

    fingerprint = new_signing_key(options.new_key)
    public = f"{options.new_key}.pub"
    if options.json:
        say_json({"private": options.new_key, "public": public, "key": fingerprint})
    else:
        say(
            f"private key: {escaped(options.new_key)}, for the signer alone\n"
            f"public key: {escaped(public)}, for whoever verifies\n"
            f"fingerprint: {fingerprint}"
        )
    return 0


def _sign(options: argparse.Namespace) -> int:
    from adjudge._record.vouching import UnsoundRecord, sign_checkpoint

    output = options.output if options.output is not None else f"{options.files[0]}.checkpoints"
    try:
        checkpoint = sign_checkpoint(
            files_of(options), options.key, output=output, after=options.after
        )
    except UnsoundRecord as unsound:
        if options.json:
            say_json(asdict(unsound.result))
        complain(f"{fault_of(options.files, unsound.result)} Nothing was signed.")
        return exit_code(unsound.result)
    if options.json:
        say_json({**asdict(checkpoint), "output": output})
    else:
        say(
            f"signed: {checkpoint.records} records, {checkpoint.signed_at}\n"
            f"head: {checkpoint.head}:{checkpoint.records}\n"
            f"key: {checkpoint.key}\n"
            f"in: {escaped(output)}"
        )
    return 0
