"""What a guard leaves in its record: linked, closed, and without the secrets of the calls."""

from __future__ import annotations

import asyncio
import json
import logging

import pytest

from adjudge import (
    ToolGuard,
    ToolSet,
    compile_policy,
    default_redactor,
    hash_chained_sink,
    no_redaction,
    tool,
    verify_chain,
)
from adjudge.testing import scripted_approval

SECRET = "s3cr3t-value"

POLICY = compile_policy(
    {
        "rules": [
            {"id": "no", "match": {"args.mode": "deny"}, "decision": "deny"},
            {"id": "dry", "match": {"args.mode": "preview"}, "decision": "dry_run"},
            {"id": "ask", "match": {"args.mode": "ask"}, "decision": "approve_required"},
            {
                "id": "rewrite",
                "match": {"args.mode": "rewrite"},
                "decision": "transform",
                "transform": {"path": "args.body", "set": f"password={SECRET}"},
            },
            {"id": "yes", "match": {"tool": "send"}, "decision": "allow"},
        ]
    }
)
MODES = ("run", "fail", "deny", "preview", "ask", "rewrite")


@tool()
async def send(mode: str, headers: dict, url: str, body: str = "") -> str:
    """Send something."""
    if mode == "fail":
        raise ConnectionError(f"could not connect to {url}")
    return body


@send.shadow
async def preview(mode: str, headers: dict, url: str, body: str = "") -> dict:
    """Say what would be sent."""
    return {"headers": headers, "url": url}


def arguments(mode):
    """Arguments with the secret in a key, a URL and nested."""
    return {
        "mode": mode,
        "headers": {"deep": [{"Authorization": f"Bearer {SECRET}"}]},
        "url": f"https://user:{SECRET}@host/?token={SECRET}",
    }


async def drive(*sinks, door="async", **options):
    """Make one call of each kind through a guard."""
    guard = ToolGuard(
        policy=POLICY,
        tools=ToolSet([send]),
        sinks=sinks,
        on_approval=scripted_approval([True]),
        **options,
    )
    calls = []
    for mode in MODES:
        if door == "async":
            calls.append(await guard.check("send", arguments(mode)))
        else:
            calls.append(await asyncio.to_thread(guard.check_sync, "send", arguments(mode)))
    return calls


@pytest.mark.parametrize("door", ["async", "sync"])
async def test_every_ending_is_linked_closed_and_without_secrets(record, door, caplog):
    """Law 7: one chain, one terminal event a call, and no secret in it, however the call ends."""
    caplog.set_level(logging.DEBUG)
    await drive(hash_chained_sink(record, required=True), door=door)
    result = verify_chain(record)
    text = record.read_text()
    terminal = [
        json.loads(line)["seq"]
        for line in text.splitlines()
        if json.loads(line)["kind"].startswith("action.")
    ]

    assert result.intact
    assert () == result.open_proposals
    assert len(MODES) == len(set(terminal)) == len(terminal)
    assert SECRET not in text + caplog.text


async def test_the_body_gets_what_the_record_does_not_show(record):
    """Law 5: redaction changes the record, never what runs."""
    calls = await drive(hash_chained_sink(record))

    assert f"password={SECRET}" == calls[MODES.index("rewrite")].result.value
    assert arguments("run") == {
        key: value for key, value in calls[0].request.args.items() if key != "body"
    }


async def test_the_record_is_as_open_as_its_owner_wants(record):
    """With no_redaction everything is there; with a path of one's own, more is gone."""
    await drive(hash_chained_sink(record), redact=no_redaction)
    everything = record.read_text()
    record.unlink()
    await drive(hash_chained_sink(record), redact=default_redactor(paths=["args.mode"]))

    assert SECRET in everything
    assert '"mode":"run"' not in record.read_text()


async def test_a_redactor_that_fails_opens_nothing(record):
    """Law 4: the record has neither the secret nor a hole where events were."""

    def broken(body):
        raise ValueError(SECRET)

    await drive(hash_chained_sink(record), redact=broken)

    assert verify_chain(record).intact
    assert SECRET not in record.read_text()


async def test_guards_in_many_tasks_share_one_record(record):
    """Many guards with sinks of their own on one path make one chain, with every call closed."""
    await asyncio.gather(*(drive(hash_chained_sink(record)) for _ in range(10)))
    result = verify_chain(record)

    assert result.intact
    assert () == result.open_proposals


@pytest.mark.parametrize("redact", [default_redactor(), no_redaction])
async def test_no_sink_can_change_what_the_next_one_records(record, redact):
    """Law 7: an event is immutable, at any depth, so a careless sink forges nothing."""
    tried = []

    def careless(event):
        for part in (event.body, event.body.get("args", {}).get("headers", event.body)):
            with pytest.raises(TypeError, match="immutable"):
                part["forged"] = True
            tried.append(event.kind)

    await drive(careless, hash_chained_sink(record), redact=redact)

    assert tried
    assert "forged" not in record.read_text()


@pytest.mark.parametrize("way", ["event", "refused"])
async def test_what_another_guard_recorded_is_looked_through_anew(record, way):
    """What one redactor leaves in a body is nothing that a stricter one vouches for."""

    def unknown():
        raise LookupError("nobody")

    seen = []
    await drive(seen.append)
    redact = default_redactor(names=["mode"])
    async with ToolGuard(
        policy=POLICY, tools=ToolSet([send]), sinks=[hash_chained_sink(record)], redact=redact
    ) as guard:
        if way == "event":
            await guard.record_event("run.noted", {"was": seen[0].body})
        else:
            await guard.check("send", seen[0].body, context=unknown)

    assert "run" == seen[0].body["args"]["mode"]
    assert '"mode":"[redacted]"' in record.read_text("utf-8")
    assert '"mode":"run"' not in record.read_text("utf-8")
