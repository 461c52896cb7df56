"""The events of a YAML text: from libyaml, where it is sure to read what PyYAML's own parser reads.

It is several times as fast, and differs from the parser in Python in a few ways: what follows the
head of a block text, tags, `?`, tabs and rarer characters, where a value that is not there stands,
and the words of an error. A text that could show one of them is read by the parser in
Python, so that what a policy means never depends on how PyYAML was built.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

__all__ = ["Doubtful", "events_of", "fast_events_of"]

_DOUBTFUL = re.compile(
    r"""
      [^\n\x20-\x7e\xa1-\xac\xae-\u167f\u1681-\u1fff\u2010-\u2027\u2030-\u205e\u2070-\u2fff
       \u3001-\ud7ff\ue000-\ufdcf\ufdf0-\ufefe\uff00-\ufffd\U00010000-\U0001fffd]
    | ^%                            # a directive
    | (?:^|[\s\[\]{},])!            # a tag
    | (?:^|[\s\[\]{},-])\?          # a key that stands by itself
    | [|>][-+0-9]*\#                # what looks like a comment after the head of a block text
    | [^\n]\Z
    """,
    re.VERBOSE | re.MULTILINE,
)


class Doubtful(Exception):
    """A text that the two parsers may read differently."""


def events_of(text: str) -> Iterator[Any]:
    """Give the events of PyYAML's own parser, as they are asked for."""
    import yaml

    found: Iterator[Any] = yaml.parse(text, Loader=yaml.SafeLoader)
    return found


def fast_events_of(text: str) -> Iterator[Any]:
    """Give the same events by libyaml; raises `Doubtful` where they might not be the same."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", None)
    if loader is None or _DOUBTFUL.search(text):
        raise Doubtful
    try:
        for event in yaml.parse(text, Loader=loader):
            if type(event) is yaml.ScalarEvent and not event.style and _is_doubtful(event.value):
                raise Doubtful
            yield event
    except yaml.YAMLError as error:
        raise Doubtful from error


def _is_doubtful(plain: str) -> bool:
    return not plain or "?" in plain
