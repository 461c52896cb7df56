"""What goes wrong on the way to the server, and there: a sentence, no grant, and no secret."""

import threading
import time
import traceback
from contextlib import contextmanager
from dataclasses import replace

import psycopg
import pytest

from adjudge import ApprovalDecision, LedgerError
from adjudge.integration import EntryState
from adjudge_conformance.ledger import ENTRY, NOW
from adjudge_conformance.servers import ServerLedgerContract
from adjudge_postgres import PostgresLedger
from adjudge_postgres._connections import Connections, Server


@pytest.fixture
def ledger(url, schema):
    """Open a ledger with one entry."""
    opened = PostgresLedger(url, schema=schema)
    opened.add(ENTRY)
    return opened


def server_of(url):
    """Give the way to the server, where a step has little time."""
    return Server(
        url, connect_seconds=5, busy_seconds=0.3, name="the PostgreSQL ledger", error=LedgerError
    )


def claim(ledger, holder="h"):
    """Claim the entry."""
    return ledger.claim("e1", expected=EntryState.PAUSED, holder=holder, now=NOW)


def took(seconds, began):
    """Whether no more than that has passed, and a while for a busy machine."""
    return time.monotonic() - began < seconds + 5


@pytest.fixture
def options(schema):
    """Keep what there is in the test's own schema."""
    return {"schema": schema}


class TestConnections(ServerLedgerContract):
    ledger_class = PostgresLedger


# Nobody there


def test_a_server_that_is_not_there_is_named(tmp_path):
    """The sentence says where it was looked for."""
    with pytest.raises(LedgerError, match=str(tmp_path)):
        PostgresLedger(f"host={tmp_path} dbname=x")


def test_a_kept_connection_that_died_is_replaced(url, ledger, schema, execute):
    """The server was restarted, or a firewall forgot: the next step opens another one."""
    named = psycopg.conninfo.make_conninfo(url, application_name=schema)
    kept = PostgresLedger(named, schema=schema)
    find = "FROM pg_stat_activity WHERE application_name = %s"

    ended = execute(f"SELECT pg_terminate_backend(pid) {find}", schema)

    assert [(True,)] == ended
    assert ENTRY == kept.get("e1")


def test_a_way_that_is_cut_in_a_step_takes_the_step_back(
    url, relay, through, ledger, schema, execute
):
    """It waits for a rival's lock when the network fails: it raises, and has claimed nothing."""
    far = PostgresLedger(f"{through} application_name='{schema}'", schema=schema)
    raised = []
    with locked(url, schema):
        thread = threading.Thread(target=lambda: raised.append(error_of(lambda: claim(far))))
        thread.start()
        until_waiting_for_a_lock(execute, schema)
        relay.cut()
        thread.join(30)
    (error,) = raised

    assert type(error) is LedgerError
    assert claim(ledger) is not None


@contextmanager
def locked(url, schema):
    """Hold the lock of every entry."""
    with psycopg.connect(url) as rival:
        rival.execute("SELECT set_config('search_path', quote_ident(%s), false)", (schema,))
        rival.execute("SELECT FROM entries FOR UPDATE")
        yield


def error_of(step):
    """Run a step, and give what it raises."""
    try:
        step()
    except BaseException as error:
        return error
    return None


def until_waiting_for_a_lock(execute, name):
    """Wait until a step of the connection of that name waits for another's."""
    until = time.monotonic() + 30
    while time.monotonic() < until:
        if execute(
            "SELECT pid FROM pg_stat_activity"
            " WHERE application_name = %s AND wait_event_type = 'Lock'",
            name,
        ):
            return
    raise AssertionError("nothing waits")


# Somebody else is at it


def test_a_row_that_is_locked_is_waited_for_so_long(url, ledger, schema, execute):
    """Whoever holds it for longer than `busy_seconds` has the step fail, and not hang."""
    hasty = PostgresLedger(url, schema=schema, busy_seconds=0.3)
    with locked(url, schema):
        began = time.monotonic()

        for step in (
            lambda: claim(hasty),
            lambda: hasty.answer("e1", ApprovalDecision(True, "ana"), now=NOW),
        ):
            with pytest.raises(LedgerError, match="timeout"):
                step()

        assert took(1, began)

    assert claim(hasty) is not None


def test_no_free_connection_is_waited_for_so_long(url, ledger, schema):
    """All of them stuck: the step fails with a sentence that says so."""
    narrow = PostgresLedger(url, schema=schema, connections=1, busy_seconds=0.5)
    errors = []
    threads = [
        threading.Thread(target=lambda: errors.append(error_of(lambda: claim(narrow))))
        for _ in range(6)
    ]
    with locked(url, schema):
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert [LedgerError] * 6 == [type(error) for error in errors]
    assert [error for error in errors if "have been busy" in str(error)]
    assert claim(narrow) is not None


def test_a_stopped_process_keeps_no_lock(url, ledger, schema):
    """What stops in the middle of a step is taken back by the server, for others to go on."""
    stopped = Connections(server_of(url), 1)

    def stop():
        with stopped.step() as connection:
            connection.execute("SELECT set_config('search_path', quote_ident(%s), true)", (schema,))
            connection.execute("UPDATE entries SET state = 'finished'")
            assert claim(ledger) is not None

    assert "idle-in-transaction timeout" in str(error_of(stop))
    assert EntryState.CLAIMED is ledger.get("e1").state


# The settings of a database are not the ledger's


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("default_transaction_isolation", "serializable"),
        ("default_transaction_read_only", "on"),
        ("synchronous_commit", "off"),
        ("search_path", "nowhere"),
        ("timezone", "Asia/Kolkata"),
        ("datestyle", "SQL,DMY"),
        ("client_encoding", "latin1"),
        ("intervalstyle", "sql_standard"),
        ("standard_conforming_strings", "off"),
    ],
)
def test_a_database_with_other_settings_serves_as_well(url, schema, setting, value):
    """What a ledger depends on, it sets for each of its steps."""
    set_ = psycopg.conninfo.make_conninfo(url, options=f"-c {setting}={value}")
    ledger = PostgresLedger(set_, schema=schema)
    entry = replace(ENTRY, run="ü \U0001f980 \\n")

    ledger.add(entry)

    assert entry == ledger.get("e1")
    assert claim(ledger) is not None


def test_a_commit_waits_for_the_disk(url, schema, execute):
    """A database that is set to forget the last commits in a crash does not forget a claim."""
    lax = psycopg.conninfo.make_conninfo(url, options="-c synchronous_commit=off")
    ledger = PostgresLedger(lax, schema=schema)
    execute(
        "CREATE FUNCTION {schema}.note() RETURNS trigger LANGUAGE plpgsql AS"
        " 'BEGIN NEW.run = current_setting(''synchronous_commit''); RETURN NEW; END'",
        schema=schema,
    )
    execute(
        "CREATE TRIGGER note BEFORE INSERT ON {schema}.entries"
        " FOR EACH ROW EXECUTE FUNCTION {schema}.note()",
        schema=schema,
    )

    ledger.add(ENTRY)

    assert [("on",)] == execute("SELECT run FROM {schema}.entries", schema=schema)


# Secrets


SECRET = "s3cret"
BROKEN = [
    f"postgresql://u:{SECRET}@@127.0.0.1:1/db",
    f"postgresql://u:p@{SECRET}@127.0.0.1:1/db",
    f"postgresql://u:12/{SECRET}@127.0.0.1/db",
    f"postgresql://u:{SECRET}/x@127.0.0.1/db",
    f"postgresql://u:{SECRET}%zz@127.0.0.1/db",
    f"postgresql://u:x[{SECRET}@127.0.0.1/db",
    f"password={SECRET} {SECRET}",
    f"password='{SECRET} host=x",
    f"passwort={SECRET}",
    f"host=127.0.0.1 port=1 password={SECRET}",
    f"host=127.0.0.1 port=1x password={SECRET}",
    f"host=127.0.0.1 port=1 sslmode=maybe password={SECRET}",
    f"host=127.0.0.1 port=99999 password={SECRET}",
]


@pytest.mark.parametrize("conninfo", BROKEN)
def test_an_error_holds_no_password(conninfo):
    """Neither the sentence, nor the traceback, nor what the exception carries along."""
    with pytest.raises(LedgerError) as raised:
        PostgresLedger(conninfo)

    shown = "".join(traceback.format_exception(raised.value))
    assert SECRET not in shown.replace(conninfo, "")
    assert SECRET not in str(raised.value)


def test_a_ledger_does_not_show_its_password(url, schema):
    """Nor does it when it is printed."""
    ledger = PostgresLedger(psycopg.conninfo.make_conninfo(url, password=SECRET), schema=schema)

    assert SECRET not in repr(ledger) + str(ledger)


def test_an_error_holds_no_arguments(ledger, schema, execute):
    """The server would tell the whole row that it does not take."""
    execute(
        "ALTER TABLE {schema}.entries ADD CHECK (tool <> 'x')".replace("tool", "id"), schema=schema
    )
    error = error_of(lambda: ledger.add(replace(ENTRY, id="x", run=SECRET)))

    assert type(error) is LedgerError
    assert SECRET not in "".join(traceback.format_exception(error))


@pytest.mark.parametrize("name", ["connect_seconds", "busy_seconds"])
@pytest.mark.parametrize("value", [0, -1, float("inf"), float("nan"), True, "1", None])
def test_a_time_out_is_a_number_of_seconds(url, schema, name, value):
    """Nothing waits for ever."""
    with pytest.raises((TypeError, ValueError), match=name):
        PostgresLedger(url, schema=schema, **{name: value})


@pytest.mark.parametrize("value", [0, -1, 1.5, True, None])
def test_there_is_at_least_one_connection(url, schema, value):
    """And it is counted in whole ones."""
    with pytest.raises((TypeError, ValueError), match="connections"):
        PostgresLedger(url, schema=schema, connections=value)


@pytest.mark.parametrize("id", ["a\0b", "\ud800"])
def test_an_id_that_no_text_of_postgres_can_be_is_an_error(ledger, id):
    """Whatever is asked about it."""
    for step in (
        lambda: ledger.get(id),
        lambda: ledger.add(replace(ENTRY, id=id)),
        lambda: ledger.expire(id, now=NOW),
    ):
        with pytest.raises(LedgerError):
            step()
