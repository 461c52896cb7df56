"""What a secret looks like: names of fields that hold one, and secrets within text.

Names are certain: a value under such a name is always taken out. Text is best effort: it finds
credentials in URLs, `name=value` pairs, authorization schemes and tokens of well-known shapes, and
rather takes out a word too many. It never fails, and its time is linear in the text.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator

__all__ = ["REDACTED", "is_harmless", "is_secret_name", "redact_text", "words_of"]

REDACTED = "[redacted]"

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_SECRET_WORD = re.compile(
    "apikey|authorization|cookies?|credentials?|cvc|cvv|otp|passcode|passphrase|passwd|passwords?"
    "|pin|pwd|secrets?|tokens?"
)
_KEY_OF = re.compile(
    "access|account|api|app|auth|client|decryption|encryption|license|master|private|secret"
    "|service|session|shared|signing|ssh|storage"
)
# Names written in one piece: dbpassword, clientsecret, authtoken.
_SECRET_ENDING = re.compile(
    "(?:accesskey|apikey|authorization|cookie|credentials?|passphrase|passwd|password|privatekey"
    r"|pwd|secret|secretkey|token)\Z"
)
_COUNTED = re.compile("budget|completion|count|input|limit|max|min|output|prompt|total|used")


def words_of(name: str) -> tuple[str, ...]:
    """Split a name as people write it (`X-Api-Key`, `apiKey`, `api_key`) into lower-case words."""
    return tuple(word.lower() for word in _WORD.findall(name))


def is_secret_name(name: str, value: object = "") -> bool:
    """Whether a field of that name holds a secret.

    `value` tells a count of tokens from a token: `max_tokens: 100` is none.
    """
    words = words_of(name)
    if isinstance(value, int | float) and not isinstance(value, bool) and _is_count(words):
        return False
    if words == ("auth",):
        return isinstance(value, str | list | tuple)
    return (
        any(map(_SECRET_WORD.fullmatch, words))
        or any(
            second in ("key", "keys") and _KEY_OF.fullmatch(first) is not None
            for first, second in itertools.pairwise(words)
        )
        or _SECRET_ENDING.search("".join(words)) is not None
    )


def _is_count(words: tuple[str, ...]) -> bool:
    return "tokens" in words or ("token" in words and any(map(_COUNTED.fullmatch, words)))


_USER_INFO = re.compile(r"(?<=://)[^/\s?#\"'<>]{1,2048}@")
_SCHEME = re.compile(r"\b(bearer|basic|digest|negotiate)(\s+)([A-Za-z0-9._~+/=:-]+)", re.IGNORECASE)
_KNOWN = re.compile(
    r"""-----BEGIN[ ][A-Z ]{0,40}PRIVATE[ ]KEY-----
          (?:(?!-----END)[\s\S])* (?:-----END[A-Z ]{0,60}-----)?
      | \bAKIA[0-9A-Z]{16}\b
      | \bgh[pousr]_[A-Za-z0-9]{20,}
      | \bgithub_pat_[A-Za-z0-9_]{20,}
      | \bglpat-[A-Za-z0-9_-]{16,}
      | \bsk-[A-Za-z0-9_-]{16,}
      | \bxox[a-z]-[A-Za-z0-9-]{10,}
      | \bAIza[A-Za-z0-9_-]{30,}
      | \beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{4,}\.[A-Za-z0-9_-]*
    """,
    re.VERBOSE,
)
# One word is never a secret of a known shape if it is shorter than this.
_SHORTEST_KEY = 20
# Text without any of these shows no secret that would be found, and is most text.
_MAYBE = re.compile(
    r"[=:]|--|AKIA|gh[pousr]_|github_pat|glpat|sk-|xox|AIza|eyJ|\b(?:bearer|basic|digest|negotiate)\b",
    re.IGNORECASE,
)
# A bare "password is" is English: only a flag may have its value after a space.
_SEPARATOR = r"\s{0,8}(?:=>|:=|[=:])\s{0,8}"
_PAIR = re.compile(
    rf"""(?<![\w.-])(?P<flag>--?)?(?P<name>\w[\w.-]{{0,63}})(?:\\*["']\]?)?
        (?(flag)(?:{_SEPARATOR}|\s{{1,8}})|{_SEPARATOR})""",
    re.VERBOSE,
)
_BARE = re.compile(r"[^\s\"'&,;<>(){}\[\]\\]+")
_OPENING_QUOTE = re.compile(r"\\*[\"']")
_TO_LINE_END = re.compile(r"[^\r\n\"'\\]*")
_NAMES_OF_LONG_VALUES = ("cookie", "cookies", "authorization")


def is_harmless(text: str) -> bool:
    """Whether a text certainly shows no secret that would be found."""
    if len(text) < _SHORTEST_KEY and (text.isidentifier() or not text):
        return True
    return _MAYBE.search(text) is None


def redact_text(text: str, is_secret: Callable[[str, object], bool] = is_secret_name) -> str:
    """Give the text without the secrets that it shows; `is_secret` judges a name and its value."""
    if is_harmless(text):
        return text
    text = _KNOWN.sub(REDACTED, text)
    text = _USER_INFO.sub(REDACTED + "@", text)
    text = "".join(_without_pairs(text, is_secret))
    return _SCHEME.sub(_redact_scheme, text)


def _redact_scheme(match: re.Match[str]) -> str:
    scheme, gap, value = match.groups()
    # "Basic understanding" is English; a real one has a capital, a digit or padding in it.
    if scheme.lower() != "bearer" and value.isalpha() and value.islower():
        return match[0]
    return f"{scheme}{gap}{REDACTED}"


def _without_pairs(text: str, is_secret: Callable[[str, object], bool]) -> Iterator[str]:
    done = position = 0
    while (match := _PAIR.search(text, position)) is not None:
        position = match.end()
        if not is_secret(match["name"], ""):
            continue
        start, end = _value_at(text, position, match["name"])
        value = text[start:end]
        if value and is_secret(match["name"], 0 if value.isdecimal() else value):
            yield text[done:start]
            yield REDACTED
            done = position = end
    yield text[done:]


def _value_at(text: str, start: int, name: str) -> tuple[int, int]:
    """Find where a value begins and ends: quoted, in brackets, a whole header line, or one word."""
    quote = _OPENING_QUOTE.match(text, start)
    if quote is not None:
        return quote.end(), _closing_quote(text, quote.end(), quote[0])
    if text.startswith(("{", "["), start):
        return start, _closing_bracket(text, start)
    if words_of(name)[-1:] and words_of(name)[-1] in _NAMES_OF_LONG_VALUES:
        match = _TO_LINE_END.match(text, start)
    else:
        match = _SCHEME.match(text, start) or _BARE.match(text, start)
    return start, match.end() if match is not None else start


def _closing_quote(text: str, start: int, quote: str) -> int:
    end = text.find(quote, start)
    if len(quote) == 1:
        while end > start and _is_escaped(text, start, end):
            end = text.find(quote, end + 1)
    return end if end >= 0 else len(text)


def _is_escaped(text: str, start: int, place: int) -> bool:
    before = place
    while before > start and text[before - 1] == "\\":
        before -= 1
    return (place - before) % 2 == 1


def _closing_bracket(text: str, start: int) -> int:
    depth = 0
    for place in range(start, len(text)):
        if text[place] in "{[":
            depth += 1
        elif text[place] in "}]":
            depth -= 1
            if depth == 0:
                return place + 1
    return len(text)
