"""What a person asks about a policy: what it says, whether it means that, and what would change.

`import adjudge` never loads this package, and nothing that decides or enforces imports it. Every
function takes compiled policies and gives values; the commands of the same names print them.
"""

from __future__ import annotations

__all__: list[str] = []
