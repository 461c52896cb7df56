"""The lock of a file that several write to."""

import pytest

from adjudge._record import filelock
from adjudge._record.filelock import locked_for_append


def test_an_interrupt_while_the_lock_is_waited_for_leaves_no_file_open(tmp_path, monkeypatch):
    """An open file would keep the lock that it may have got."""
    waited_for = []

    def interrupted(file):
        waited_for.append(file)
        raise KeyboardInterrupt

    monkeypatch.setattr(filelock, "_lock", interrupted)
    files = set()

    with pytest.raises(KeyboardInterrupt), locked_for_append(tmp_path / "audit.jsonl", files):
        pass

    assert [True] == [file.closed for file in waited_for]
    assert set() == files
