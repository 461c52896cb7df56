"""Pages point at files that exist."""

from __future__ import annotations

import re

import pytest

from ._tree import ROOT, tracked_files

LINK = re.compile(r"\]\((?P<target>[^)\s]+)\)")
PAGES = [path for path in tracked_files() if path.suffix == ".md"]


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_links_lead_to_files_that_exist(page) -> None:
    """A relative link names a file or folder of the repository."""
    targets = LINK.findall((ROOT / page).read_text(encoding="utf-8"))
    relative = [to for to in targets if not to.startswith(("http:", "https:", "mailto:", "#"))]
    missing = [to for to in relative if not (ROOT / page.parent / to.partition("#")[0]).exists()]

    assert [] == missing
