"""A run seen through its journal: `replay`, and `adjudge trace`."""

import asyncio
import json

import pytest

from adjudge import (
    MemoryRunStore,
    SQLiteRunStore,
    StepRecord,
    step_record_to_json,
)
from adjudge.cli import main
from adjudge_runtime import JournalError, RunView, StepView, ToolCall, ToolCalls, replay

from .scripted import DONE, DyingStore, Script, call, policy

ACTIONS = (ToolCall("echo", {"text": "a"}, "id-1"), ToolCalls((call("erase"), call("echo"))), DONE)


@pytest.fixture
async def records(world):
    """Give the journal of a finished run."""
    store = MemoryRunStore()
    await world.run(Script(*ACTIONS), store=store, run_id="r")
    return await store.load("r")


def kept_in(path, world, *actions):
    """Run to the end, with a store on the disk."""
    store = SQLiteRunStore(path)
    asyncio.run(world.run(Script(*actions), store=store, run_id="r"))
    store.close()


class TestReplay:
    """A pure function of the records."""

    async def test_shows_each_call_and_the_answer(self, records):
        """A finished run is all there."""
        expected = RunView(
            "r",
            len(records),
            1,
            (
                StepView(0, "echo", {"text": "a"}, "allow", True, "a", call_id="id-1"),
                StepView(1, "erase", {}, "deny", False, "[denied] never erase", call_id="step_1_0"),
                StepView(1, "echo", {}, "allow", True, "hi", call_id="step_1_1"),
                StepView(2, None, None, None, True, "done"),
            ),
            "done",
        )

        assert expected == replay(records)

    async def test_shows_what_nothing_came_of(self, records):
        """A call without intent is still to run, one with an intent alone is uncertain."""
        decided, intended = replay(records[:2]).steps[0], replay(records[:3]).steps[0]

        assert (None, False) == (decided.ok, decided.uncertain)
        assert (None, True) == (intended.ok, intended.uncertain)

    async def test_shows_what_was_uncertain(self, world, records):
        """A call that was settled later says that it had been uncertain."""
        store = DyingStore(records[:3], 99)
        retry = {"match": {"context.extra.uncertain_retry": True}, "decision": "allow"}
        await world.run(Script(*ACTIONS), policy=policy(retry), store=store, run_id="r")

        view = replay(await store.load("r"))

        assert (2, False, True) == (
            view.attempts,
            view.steps[0].uncertain,
            view.steps[0].resolved_uncertain,
        )

    def test_of_nothing_is_nothing(self):
        """No records are no run yet."""
        assert RunView("", 0, 0, (), None) == replay([])

    async def test_refuses_a_journal_with_a_gap(self, records):
        """Law 6: a record that is lost in the middle could be that a body has run."""
        for gone in range(len(records) - 1):
            with pytest.raises(JournalError, match="is due"):
                replay([*records[:gone], *records[gone + 1 :]])

    async def test_refuses_what_is_no_journal(self, records):
        """Records of two runs, out of order or of no known kind are refused."""
        first = records[0]
        strange = StepRecord("r", 1, "strange", "", {}, first.timestamp)
        other = StepRecord("other", 1, "final", "", {"final_answer": ""}, first.timestamp)

        for wrong in ([first, first], [first, strange], [first, other]):
            with pytest.raises(JournalError):
                replay(wrong)


class TestTrace:
    """The command."""

    async def test_shows_a_file_of_records(self, records, tmp_path, capsys):
        """A file of JSON lines is shown, one line for each call."""
        file = tmp_path / "run.jsonl"
        file.write_text("".join(step_record_to_json(each) + "\n" for each in records))

        assert 0 == main(["trace", str(file)])
        assert [
            f'run "r": {len(records)} records, 1 attempt, finished',
            'step 0: "echo" {"text": "a"}: allow, ok: "a"',
            'step 1: "erase" {}: deny, not ok: "[denied] never erase"',
            'step 1: "echo" {}: allow, ok: "hi"',
            'step 2: answer "done"',
        ] == capsys.readouterr().out.splitlines()

    def test_shows_a_run_of_a_store(self, world, tmp_path, capsys):
        """A run is found in a SQLite file by its id."""
        kept_in(tmp_path / "runs.db", world, *ACTIONS)

        code = main(["trace", str(tmp_path / "runs.db"), "r", "--json"])

        shown = json.loads(capsys.readouterr().out)
        assert (0, "r", "done", 4) == (
            code,
            shown["run_id"],
            shown["final_answer"],
            len(shown["steps"]),
        )

    async def test_says_that_something_is_uncertain(self, records, tmp_path, capsys):
        """A call of which nobody knows is exit code 1."""
        file = tmp_path / "run.jsonl"
        file.write_text("".join(step_record_to_json(each) + "\n" for each in records[:3]))

        assert 1 == main(["trace", str(file)])
        assert "UNCERTAIN" in capsys.readouterr().out

    def test_moves_no_cursor(self, world, tmp_path, capsys):
        """What a tool said is shown as it was written, without control characters."""
        kept_in(tmp_path / "runs.db", world, call("echo", text="\x1b[2J"), DONE)

        main(["trace", str(tmp_path / "runs.db"), "r"])

        assert "\x1b" not in capsys.readouterr().out

    @pytest.mark.parametrize(
        ("content", "arguments"),
        [
            (None, []),
            (b"", []),
            (b"nonsense\n", []),
            (b"\xff\xfe\n", []),
            (b"SQLite format 3\0", []),
            (b"SQLite format 3\0nonsense", ["r"]),
        ],
        ids=["absent", "empty", "no-record", "no-text", "no-run", "no-database"],
    )
    def test_what_it_cannot_show_is_bad_input(self, tmp_path, capsys, content, arguments):
        """Nothing shown is exit code 2, and why is on stderr."""
        file = tmp_path / "run"
        if content is not None:
            file.write_bytes(content)

        assert 2 == main(["trace", str(file), *arguments])
        assert ("", True) == (
            (captured := capsys.readouterr()).out,
            captured.err.startswith("adjudge trace:"),
        )

    async def test_several_runs_need_a_choice(self, records, tmp_path, capsys):
        """Where a file holds several runs one of them is asked for."""
        file = tmp_path / "run.jsonl"
        other = StepRecord("s", 0, "run.started", "", records[0].body, records[0].timestamp)
        lines = [step_record_to_json(each) + "\n" for each in (*records, other)]
        file.write_text("".join(lines))

        assert 2 == main(["trace", str(file)])
        assert 0 == main(["trace", str(file), "s"])
        assert 2 == main(["trace", str(file), "nobody"])
