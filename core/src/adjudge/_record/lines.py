"""The line format of the hash chain: how one line is written, read, and told from a torn one.

A line is the canonical JSON of the record with `prev_hash`, whose closing brace is replaced by
`,"hash":"HEX"}`; HEX is the SHA-256 of that canonical JSON, so it covers the line's exact bytes. A
write that was cut short leaves a proper prefix of a line, which no other fault looks like; the next
writer closes it with CAN (0x18, never part of a line) and a newline, and vouches for it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from adjudge._record.format import record_line

__all__ = [
    "CLOSE_TORN",
    "CONTINUED_KIND",
    "GENESIS_HASH",
    "OWN_KINDS",
    "RESIDUE_KIND",
    "SEAL",
    "SEALED",
    "BadLine",
    "ChainLine",
    "chain_line",
    "closing",
    "continued_record",
    "hash_of",
    "is_residue",
    "is_torn",
    "is_whole",
    "read_line",
    "residue_record",
    "sealed_line",
]

GENESIS_HASH = "adjudge-audit-genesis-v1"
RESIDUE_KIND = "record.residue"
CONTINUED_KIND = "record.continued"
OWN_KINDS = frozenset({RESIDUE_KIND, CONTINUED_KIND})
"""The kinds of event that the record writes about itself, and takes from nobody."""
_CAN = b"\x18"
CLOSE_TORN = _CAN + b"\n"
_START = b'{"body":'
SEAL = ',"hash":"'
SEALED = '"}\n'
"""What stands around the hash, in place of the closing brace."""
_SUFFIX_START = SEAL.encode()
_SUFFIX_SIZE = len(_SUFFIX_START) + 64 + 2


class BadLine(Exception):
    """A line that is no part of a chain; `code` says which way, the text says it in words."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


@dataclass(frozen=True, slots=True)
class ChainLine:
    """One line that was read: its record without the hashes, and its two hashes."""

    record: Mapping[str, Any]
    prev_hash: str
    hash: str


def chain_line(record: Mapping[str, Any], prev_hash: str) -> tuple[bytes, str]:
    """Give the line, its newline included, and its hash."""
    return sealed_line(record_line({**record, "prev_hash": prev_hash}))


def sealed_line(text: str) -> tuple[bytes, str]:
    """Give the line, its newline included, and its hash, of the canonical JSON of a record."""
    hexadecimal = sha256(text.encode()).hexdigest()
    return (text[:-1] + SEAL + hexadecimal + SEALED).encode("ascii"), hexadecimal


def is_whole(line: bytes) -> bool:
    """Whether a line, without its newline, ends in a hash that fits its bytes."""
    payload, written = line[:-_SUFFIX_SIZE], line[-_SUFFIX_SIZE:]
    expected = sha256(payload + b"}").hexdigest().encode("ascii")
    return written == _SUFFIX_START + expected + b'"}'


def hash_of(line: bytes) -> str:
    """Give the hash that a whole line ends in."""
    return line[-66:-2].decode("ascii")


def is_torn(line: bytes, start: bytes = _START) -> bool:
    """Whether a line, without its newline, can be what a write left that was cut short.

    That is a proper prefix of a line of ours, which begins with `start`, perhaps with NUL bytes
    after it, as some file systems leave them. Whole JSON is no such prefix.
    """
    text = line.rstrip(b"\0")
    if not (text.startswith(start) or start.startswith(text)):
        return False
    if not text.isascii() or any(byte < 0x20 for byte in text):
        return False
    try:
        json.loads(text)
    except ValueError:
        return True
    except RecursionError:
        return False
    return False


def read_line(line: bytes) -> ChainLine:
    """Read one line without its newline, or raise `BadLine`; its link is not checked."""
    if line.endswith(b"\r"):
        raise BadLine(
            "line_ending", "it ends in CR LF; the file was rewritten with other line ends"
        )
    fields = _object_of(line)
    written = fields.pop("hash", None)
    prev_hash = fields.get("prev_hash")
    if not written or not prev_hash or not isinstance(prev_hash, str):
        raise BadLine("missing_hash", "its hash or prev_hash is missing or blank")
    if not is_whole(line):
        raise BadLine("hash_mismatch", "its bytes do not fit its hash; it was modified")
    if not _is_canonical(fields, line):
        raise BadLine("not_canonical", "it is not in the form in which records are written")
    del fields["prev_hash"]
    return ChainLine(fields, prev_hash, str(written))


def _is_canonical(fields: dict[str, Any], line: bytes) -> bool:
    try:
        return record_line(fields).encode("ascii") == line[:-_SUFFIX_SIZE] + b"}"
    except (ValueError, RecursionError):
        # NaN is read, and never written.
        return False


def _object_of(line: bytes) -> dict[str, Any]:
    try:
        value = _decode(line.decode("ascii"))
    except _DuplicateKey as error:
        raise BadLine("duplicate_key", f"the key {error.args[0]!r} occurs twice in it") from None
    except (ValueError, RecursionError):
        raise BadLine("not_a_record", "it is no JSON") from None
    if not isinstance(value, dict):
        raise BadLine("not_a_record", "it is no JSON object")
    return value


class _DuplicateKey(Exception):
    pass


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise _DuplicateKey(key)
        found[key] = value
    return found


_decode = json.JSONDecoder(object_pairs_hook=_unique).decode


def is_residue(data: bytes) -> bool:
    """Whether all the bytes after a last whole line are what torn writes left.

    Torn lines that a writer has closed may come first; the last one may be open.
    """
    *closed, last = data.split(b"\n")
    return all(line.endswith(_CAN) and is_torn(line[:-1]) for line in closed) and is_torn(
        last.removesuffix(_CAN)
    )


def closing(residue: bytes) -> bytes:
    """Give what is missing so that torn bytes end as a closed line."""
    if residue.endswith(CLOSE_TORN):
        return b""
    return b"\n" if residue.endswith(_CAN) else CLOSE_TORN


def residue_record(residue: bytes, timestamp: str) -> dict[str, Any]:
    """Give the record by which a writer vouches for the bytes that a torn write left before it."""
    body = {"bytes": len(residue), "sha256": sha256(residue).hexdigest()}
    return _own_record(RESIDUE_KIND, body, timestamp)


def continued_record(file: str, head: str, records: int, timestamp: str) -> dict[str, Any]:
    """Give the record that begins a file after `records` others, the last of them in `file`."""
    body = {"file": file, "head": head, "records": records}
    return _own_record(CONTINUED_KIND, body, timestamp)


def _own_record(kind: str, body: dict[str, Any], timestamp: str) -> dict[str, Any]:
    return {
        "correlation_id": "",
        "bundle_id": "",
        "seq": 0,
        "kind": kind,
        "timestamp": timestamp,
        "body": body,
    }
