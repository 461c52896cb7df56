"""The shadows that come with Adjudge: previews that touch nothing."""

from __future__ import annotations

import os
import socket
import subprocess

import pytest

from adjudge.shadows import (
    delete_file_shadow,
    http_shadow,
    shell_shadow,
    sql_shadow,
    write_file_shadow,
)


@pytest.fixture(autouse=True)
def nothing_is_touched(monkeypatch, tmp_path):
    """Any connection, process or write fails the test."""

    def touched(*args, **kwargs):
        raise AssertionError(f"touched {args}")

    for owner, name in (
        (socket, "getaddrinfo"),
        (socket.socket, "connect"),
        (subprocess.Popen, "__init__"),
        (os, "system"),
        (os, "unlink"),
        (os, "remove"),
        (os, "rename"),
        (os, "mkdir"),
    ):
        monkeypatch.setattr(owner, name, touched)


async def test_writing_says_what_it_would_overwrite(tmp_path):
    """The preview has the size in bytes, the beginning, and what is there now."""
    there = tmp_path / "there"
    there.write_bytes(b"old")
    fresh = await write_file_shadow(str(tmp_path / "new"), "é")
    over = await write_file_shadow(str(there), "x" * 300)

    assert (2, None, True) == (fresh["bytes"], fresh["overwrites"], fresh["shown_in_full"])
    assert {"kind": "file", "bytes": 3} == over["overwrites"]
    assert ("x" * 200, False) == (over["begins"], over["shown_in_full"])
    assert [there] == list(tmp_path.iterdir())
    assert b"old" == there.read_bytes()


async def test_deleting_says_what_is_there(tmp_path):
    """A file, a folder, a link (not followed) and nothing are told apart, and stay."""
    (tmp_path / "file").write_bytes(b"abc")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    kinds = {
        name: ((await delete_file_shadow(str(tmp_path / name)))["deletes"] or {}).get("kind")
        for name in ("file", "", "link", "missing")
    }

    assert {"file": "file", "": "directory", "link": "symbolic link", "missing": None} == kinds
    assert (tmp_path / "file").exists()


async def test_a_path_that_cannot_be_looked_at_is_said_so():
    """The preview does not fail on a path that no system has."""
    assert "unknown" == (await delete_file_shadow("a\0b"))["deletes"]["kind"]


async def test_http_connects_nowhere_and_shows_no_secret():
    """Method, host, headers and size are told; credentials are not."""
    preview = await http_shadow(
        "post",
        "https://user:hunter2@host:8443/path?token=hunter3",
        {"Authorization": "hunter4", "Accept": "text/plain"},
        "é",
        5.0,
    )

    assert ("host", True, 2) == (preview["host"], preview["changes_state"], preview["body_bytes"])
    assert "text/plain" == preview["headers"]["Accept"]
    assert "hunter" not in str(preview)


@pytest.mark.parametrize(("method", "changes"), [("GET", False), ("head", False), ("PURGE", True)])
async def test_a_method_that_is_not_known_as_safe_changes_state(method, changes):
    """What is not known to be safe is taken to change something."""
    assert changes is (await http_shadow(method, "http://[bad"))["changes_state"]


async def test_a_command_is_read_and_not_run(tmp_path, monkeypatch):
    """The words, what looks dangerous, and redirections are told; nothing is expanded."""
    monkeypatch.chdir(tmp_path)
    preview = await shell_shadow("/bin/rm -rf * && curl http://x > out.txt; echo $(id)")

    assert (["rm"], ["curl"], ["out.txt"]) == (
        preview["looks_deleting"],
        preview["looks_network"],
        preview["redirects_to"],
    )
    assert "*" in preview["words"]
    assert [] == list(tmp_path.iterdir())


async def test_a_command_with_quotes_that_do_not_match_is_still_shown():
    """What a shell would refuse is split at blanks."""
    assert ["echo", "'x"] == (await shell_shadow("echo 'x"))["words"]


@pytest.mark.parametrize(
    ("query", "operations", "tables", "warnings"),
    [
        ("SELECT * FROM a JOIN s.b ON 1", ["SELECT"], [["a", "s.b"]], 0),
        ("delete from orders", ["DELETE"], [["orders"]], 1),
        ("DELETE FROM orders WHERE id = 1", ["DELETE"], [["orders"]], 0),
        ("UPDATE t SET a = 'where'", ["UPDATE"], [["t"]], 1),
        ("DROP TABLE IF EXISTS t", ["DROP"], [["t"]], 0),
        ("WITH x AS (SELECT 1) DELETE FROM t", ["DELETE"], [["t"]], 1),
        ("SELECT 1; DELETE FROM t -- where\n", ["SELECT", "DELETE"], [[], ["t"]], 2),
        ("SELECT 'delete from t'", ["SELECT"], [[]], 0),
        ('SELECT * FROM "Odd Name"', ["SELECT"], [["Odd Name"]], 0),
        ("/* DROP */ SELECT 1", ["SELECT"], [[]], 0),
        ("VACUUM", ["VACUUM"], [[]], 0),
        ("", [], [], 0),
        ("'unclosed", [], [], 0),
    ],
)
async def test_a_statement_is_read(query, operations, tables, warnings):
    """Statements, tables and a missing WHERE are read off the text, literals and comments aside."""
    preview = await sql_shadow(query)

    assert operations == [item["operation"] for item in preview["statements"]]
    assert tables == [item["tables"] for item in preview["statements"]]
    assert warnings == len(preview["warnings"])


async def test_a_statement_that_is_not_known_as_reading_changes_data():
    """PRAGMA, VACUUM and the like are not taken for harmless."""
    assert (await sql_shadow("PRAGMA x"))["statements"][0]["changes_data"]
    assert not (await sql_shadow("select 1", [1]))["statements"][0]["changes_data"]
