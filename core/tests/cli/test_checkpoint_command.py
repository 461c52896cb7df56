"""`adjudge checkpoint`, and `adjudge verify` with a public key and over several files."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from adjudge import AuditEvent, hash_chained_sink, verify_chain


def write(path, count, **options):
    """Append events to a record."""
    sink = hash_chained_sink(path, **options)
    for seq in range(count):
        sink(AuditEvent("run", "b", seq, "action.denied", datetime(2026, 1, 2, tzinfo=UTC), {}))


def cut(path, lines):
    """Leave only the first lines of a file."""
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:lines]))


@pytest.fixture
def record(tmp_path):
    """A record of three events."""
    write(tmp_path / "audit.jsonl", 3)
    return tmp_path / "audit.jsonl"


@pytest.fixture
def rotated(tmp_path):
    """A record of three files with five records."""
    write(tmp_path / "audit.jsonl", 3, rotate_bytes=1)
    return tmp_path / "audit.jsonl"


@pytest.mark.needs_extra
def test_from_a_new_key_to_a_record_that_is_vouched_for(adjudge, record, tmp_path):
    """Make a key, sign, verify: each exit 0, and each says what came of it."""
    made = adjudge("checkpoint", "--new-key", "k.pem")
    signed = adjudge("checkpoint", "audit.jsonl", "--key", "k.pem")
    done = adjudge("verify", "audit.jsonl", "--public-key", "k.pem.pub")

    assert [(0, "")] * 3 == [(each.returncode, each.stderr) for each in (made, signed, done)]
    assert "public key: k.pem.pub, for whoever verifies" in made.stdout
    assert "signed: 3 records" in signed.stdout
    assert f"head: {verify_chain(record).head}:3" in signed.stdout
    assert "in: audit.jsonl.checkpoints" in signed.stdout
    assert ", for 3 records" in done.stdout
    assert 1 == len((tmp_path / "audit.jsonl.checkpoints").read_text().splitlines())


@pytest.mark.needs_extra
def test_a_cut_record_is_exit_one_and_is_not_signed_again(adjudge, record):
    """Both commands say so; the checkpoint and its file are named."""
    adjudge("checkpoint", "--new-key", "k.pem")
    adjudge("checkpoint", "audit.jsonl", "--key", "k.pem")
    cut(record, 2)
    done = adjudge("verify", "audit.jsonl", "--public-key", "k.pem.pub")
    signed = adjudge("checkpoint", "audit.jsonl", "--key", "k.pem")

    assert [(1, "")] * 2 == [(each.returncode, each.stdout) for each in (done, signed)]
    assert "audit.jsonl.checkpoints: not good at line 1" in done.stderr
    assert "(tail_cut)" in done.stderr
    assert "Nothing was signed." in signed.stderr


@pytest.mark.needs_extra
def test_a_broken_record_is_exit_one_and_nothing_is_signed(adjudge, record, tmp_path):
    """The place of the fault is said."""
    adjudge("checkpoint", "--new-key", "k.pem")
    record.write_bytes(record.read_bytes().replace(b'"seq":1', b'"seq":9'))
    plain = adjudge("checkpoint", "audit.jsonl", "--key", "k.pem")
    structured = adjudge("checkpoint", "audit.jsonl", "--key", "k.pem", "--json")

    assert (1, "") == (plain.returncode, plain.stdout)
    assert "audit.jsonl: not good at line 2" in plain.stderr
    assert (1, "hash_mismatch") == (structured.returncode, json.loads(structured.stdout)["code"])
    assert not (tmp_path / "audit.jsonl.checkpoints").exists()


@pytest.mark.needs_extra
def test_no_checkpoint_is_exit_one_with_a_public_key(adjudge, record):
    """Who asks for checkpoints and has none gets no good answer."""
    adjudge("checkpoint", "--new-key", "k.pem")
    done = adjudge("verify", "audit.jsonl", "--public-key", "k.pem.pub", "--json")

    assert (1, "no_checkpoint") == (done.returncode, json.loads(done.stdout)["code"])


@pytest.mark.needs_extra
def test_json_has_the_checkpoint_and_the_key(adjudge, record):
    """What a job keeps of a run."""
    made = json.loads(adjudge("checkpoint", "--new-key", "k.pem", "--json").stdout)
    signed = json.loads(
        adjudge("checkpoint", "audit.jsonl", "--key", "k.pem", "--output", "c", "--json").stdout
    )
    done = adjudge(
        *("verify", "audit.jsonl", "--public-key", "k.pem.pub", "--checkpoints", "c", "--json")
    )

    assert ("k.pem", "k.pem.pub") == (made["private"], made["public"])
    assert (made["key"], 3, "c") == (signed["key"], signed["records"], signed["output"])
    assert (3, signed["signed_at"]) == (
        json.loads(done.stdout)["vouched"],
        json.loads(done.stdout)["signed_at"],
    )


@pytest.mark.needs_extra
@pytest.mark.parametrize(
    "arguments",
    [
        ("audit.jsonl", "--key", "missing.pem"),
        ("audit.jsonl", "--key", "k.pem.pub"),
        ("missing.jsonl", "--key", "k.pem"),
        ("empty.jsonl", "--key", "k.pem"),
        ("audit.jsonl", "--key", "k.pem", "--output", "."),
        ("audit.jsonl", "--key", "k.pem", "--output", "missing/c"),
        ("--new-key", "k.pem"),
        ("--new-key", "missing/k.pem"),
    ],
    ids=" ".join,
)
def test_what_cannot_be_done_is_exit_two(adjudge, record, tmp_path, arguments):
    """A key, a record or a file that is none; an old key is never overwritten."""
    (tmp_path / "empty.jsonl").touch()
    adjudge("checkpoint", "--new-key", "k.pem")
    key = (tmp_path / "k.pem").read_bytes()
    done = adjudge("checkpoint", *arguments)
    structured = adjudge("checkpoint", *arguments, "--json")

    assert (2, "") == (done.returncode, done.stdout)
    told = json.loads(structured.stdout)

    assert 2 == structured.returncode
    assert "nothing_checked" == told.get("code") or told["error"]["problems"]
    assert done.stderr.strip()
    assert key == (tmp_path / "k.pem").read_bytes()


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("audit.jsonl",),
        ("--key", "k.pem"),
        ("audit.jsonl", "--new-key", "k.pem"),
        ("--new-key", "k.pem", "--key", "k.pem"),
        ("audit.jsonl", "audit.000001.jsonl", "--key", "k.pem"),
    ],
    ids=" ".join,
)
def test_what_makes_no_sense_is_bad_usage(adjudge, record, arguments):
    """Nothing is done, and what to write is said."""
    done = adjudge("checkpoint", *arguments)

    assert (2, "") == (done.returncode, done.stdout)
    assert "--" in done.stderr


def test_one_file_is_the_whole_rotated_record(adjudge, rotated):
    """All files are named, in their order."""
    done = adjudge("verify", "audit.jsonl")

    assert (0, "") == (done.returncode, done.stderr)
    assert "intact: 5 records in 3 files\n  audit.000001.jsonl\n" in done.stdout
    assert f"head: {verify_chain(rotated).head}:5" in done.stdout


def test_several_files_are_exactly_these_in_any_order(adjudge, rotated):
    """One that is missing is exit 1, and named."""
    files = ("audit.jsonl", "audit.000001.jsonl", "audit.000002.jsonl")
    done = adjudge("verify", *files)
    missing = adjudge("verify", *files[:2])

    assert (0, 0) == (done.returncode, adjudge("verify", *files[1:]).returncode)
    assert (1, "") == (missing.returncode, missing.stdout)
    assert "audit.jsonl: not good at line 1: it goes on from audit.000002.jsonl" in missing.stderr
    assert "(file_missing). 1 records before it link." in missing.stderr


def test_one_exact_file_is_that_file_alone(adjudge, rotated):
    """A later file alone is exit 1, unless --after says what it goes on from."""
    alone = adjudge("verify", "--exact", "audit.jsonl")
    head = verify_chain([rotated.with_name("audit.000001.jsonl")]).head
    last = verify_chain([rotated.with_name(f"audit.00000{n}.jsonl") for n in (1, 2)]).head
    after = adjudge("verify", "audit.jsonl", "--after", last)
    wrong = adjudge("verify", "audit.jsonl", "--after", head)

    assert (1, True) == (alone.returncode, "earlier_missing" in alone.stderr)
    assert (0, True) == (after.returncode, "intact: records 4 to 5" in after.stdout)
    assert (1, True) == (wrong.returncode, "after_mismatch" in wrong.stderr)
    assert 2 == adjudge("verify", "audit.jsonl", "--after", "abc").returncode


def test_many_files_are_cut_with_a_count(adjudge, tmp_path):
    """The text stays readable; --json has them all."""
    write(tmp_path / "audit.jsonl", 30, rotate_bytes=1)
    done = adjudge("verify", "audit.jsonl")

    assert "  10 earlier ones; --json lists all\n  audit.000011.jsonl\n" in done.stdout
    assert 30 == len(json.loads(adjudge("verify", "--json", "audit.jsonl").stdout)["files"])


def test_a_files_name_is_shown_escaped(adjudge, tmp_path):
    """A name does not write to the terminal."""
    write(tmp_path / "a\x1b[2J", 1)
    (tmp_path / "a\x1b[2J").write_bytes(b"garbage\n")
    done = adjudge("verify", "a\x1b[2J")

    assert 1 == done.returncode
    assert "\x1b" not in done.stderr
