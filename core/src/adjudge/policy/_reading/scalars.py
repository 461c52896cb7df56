"""Decide what a plain YAML scalar says, or that it is a surprise.

Taken at its word is what YAML 1.1, YAML 1.2 and JSON read alike: `true`, `null`, `12`, `-1.5`,
`1.5e+3`, text. Everything on which they differ (`no`, `0123`, `1e3`, `12:30`, `1_000`, `0x1F`,
`.inf`, `~`, `2024-01-01`) comes with a sentence that says what to write instead. A quoted scalar
is always text and never comes here.
"""

from __future__ import annotations

import re
from typing import Any

from adjudge._values import MAX_INT_DIGITS

__all__ = ["read_plain"]

_SAME_EVERYWHERE: tuple[tuple[tuple[str, ...], Any], ...] = (
    (("null", "Null", "NULL"), None),
    (("true", "True", "TRUE"), True),
    (("false", "False", "FALSE"), False),
)
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]*)")
# YAML 1.1 wants the point and the sign of the exponent, JSON a digit on both sides of the point.
_FLOAT = re.compile(r"-?(?:0|[1-9][0-9]*)\.[0-9]+(?:[eE][-+][0-9]+)?")

_TRUE_WORDS = ("y", "yes", "on")
_FALSE_WORDS = ("n", "no", "off")
_JSON_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_LIKE_A_NUMBER = re.compile(
    r"""[-+]?(?:
        [0-9][0-9_]*                                    # leading zeros, underscores, a plus sign
      | 0b[01_]+ | 0o[0-7_]+ | 0x[0-9a-fA-F_]+
      | (?:[0-9][0-9_]*)?\.?[0-9_]+(?:[eE][-+]?[0-9]+)? # .5, 1e3, 1_000.5
      | [0-9][0-9_]*\.(?:[eE][-+]?[0-9]+)?              # 5.
      | [0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?           # 1,000
      | [0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?     # 12:30, base sixty
    )""",
    re.VERBOSE,
)
_NO_FINITE_NUMBER = re.compile(r"[-+]?\.?(?:inf|infinity|nan)", re.IGNORECASE)
_DATE = re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:(?:[Tt]|[ \t]+)[0-9].*)?")


def read_plain(text: str) -> tuple[Any, str | None]:
    """Give the value of a plain scalar and, where it is a surprise, the sentence about it."""
    for words, value in _SAME_EVERYWHERE:
        if text in words:
            return value, None
    if _INTEGER.fullmatch(text):
        return _read_integer(text)
    if _FLOAT.fullmatch(text):
        return float(text), None
    folded = text.lower()
    if folded in _TRUE_WORDS or folded in _FALSE_WORDS:
        value = folded in _TRUE_WORDS
        word = str(value).lower()
        return value, f'Unquoted {text} is read as {word} by YAML 1.1; write "{text}" or {word}.'
    if text == "":
        return (
            None,
            'There is no value here; write one, null if nothing is meant, or "" for no text.',
        )
    if text == "~":
        return None, 'Unquoted ~ is read as null; write "~" or null.'
    if text in ("=", "<<"):
        return text, f'Unquoted {text} has a meaning of its own in YAML 1.1; write "{text}".'
    return text, _number_or_date(text)


def _read_integer(text: str) -> tuple[Any, str | None]:
    if len(text.lstrip("-")) > MAX_INT_DIGITS:
        return text, f"An integer of more than {MAX_INT_DIGITS} digits cannot be compared with."
    return int(text), None


def _number_or_date(text: str) -> str | None:
    if _NO_FINITE_NUMBER.fullmatch(text):
        return f'{text} is no finite number; write a number, or "{text}" if text is meant.'
    if _DATE.fullmatch(text):
        return f'Unquoted {text} is read as a date by YAML 1.1; write "{text}".'
    if _LIKE_A_NUMBER.fullmatch(text):
        return (
            f"Unquoted {text} is one number to some readers and another, or text, to others; "
            f'write {_meant_number(text)} or "{text}".'
        )
    return None


def _meant_number(text: str) -> str:
    """Propose how to write the number, where there is no doubt which it is."""
    if _JSON_NUMBER.fullmatch(text):
        number = float(text)
        return f"{number:.0f}" if number.is_integer() and abs(number) < 1e15 else repr(number)
    plain = re.fullmatch(r"\+?([1-9][0-9,_]*|0)(\.[0-9]+)?", text)
    if plain:
        return re.sub("[,_]", "", plain.group(1)) + (plain.group(2) or "")
    if re.fullmatch(r"0x[0-9a-fA-F]+", text):
        return str(int(text, 16))
    if re.fullmatch(r"\.[0-9]+", text):
        return f"0{text}"
    return "the number in plain decimal digits"
