"""Colours, where standard output is a terminal and rich is installed (the extra `cli`).

Rich decides whether this terminal shows colours, and heeds NO_COLOR and TERM. What is painted is
text that has been escaped already; into a file or a pipe it goes as it is.
"""

from __future__ import annotations

import sys

__all__ = ["painted"]


def painted(text: str, style: str) -> str:
    """Give the text in a style of rich's, such as `bold red`; as it is where nobody would see."""
    if not text or sys.stdout is None or not sys.stdout.isatty():
        return text
    try:
        from rich.console import Console
        from rich.text import Text
    except ImportError:
        return text
    console = Console(file=sys.stdout)
    with console.capture() as captured:
        console.print(Text(text, style), end="", soft_wrap=True)
    return captured.get()
