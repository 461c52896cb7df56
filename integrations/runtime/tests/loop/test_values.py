"""What a run is told and tells: checked where it is made."""

import pickle

import pytest

from adjudge_runtime import (
    Budget,
    Conversation,
    FinalAnswer,
    Message,
    ToolCall,
    ToolCalls,
    Usage,
)


class TestUsage:
    """What model calls used."""

    def test_sums_what_both_know(self):
        """Two usages add up field by field."""
        assert Usage(3, 4, model="m") + Usage(5, 6, model="m") == Usage(8, 10, model="m")

    def test_keeps_what_one_knows(self):
        """A field that one of them does not know is the other's."""
        assert Usage(3, None, 1) + Usage(None, 6) == Usage(3, 6, 1)

    def test_names_no_model_for_two(self):
        """Where the models differ the sum names none."""
        assert (Usage(model="a") + Usage(model="b")).model is None

    @pytest.mark.parametrize("value", [True, 1.5, "3"])
    def test_refuses_what_is_no_count(self, value):
        """A count is a whole number."""
        with pytest.raises(TypeError, match="input_tokens"):
            Usage(value)

    def test_refuses_less_than_nothing(self):
        """A count is not negative."""
        with pytest.raises(ValueError, match="output_tokens"):
            Usage(1, -1)


class TestBudget:
    """How far a run may go."""

    def test_unlimited_has_no_cap(self):
        """Without a limit means without any."""
        assert Budget.unlimited() == Budget(duration_seconds=None, steps=None)

    @pytest.mark.parametrize(
        "wrong",
        [
            {"steps": -1},
            {"tokens": -5},
            {"duration_seconds": 0},
            {"duration_seconds": float("inf")},
            {"step_timeout_seconds": -1},
            {"max_repeated_calls": 0},
        ],
    )
    def test_refuses_what_is_no_cap(self, wrong):
        """A cap that means nothing is an error that names it."""
        with pytest.raises(ValueError, match=next(iter(wrong))):
            Budget(**wrong)

    @pytest.mark.parametrize("wrong", [{"steps": 2.0}, {"steps": True}, {"cost": 3}])
    def test_refuses_another_kind(self, wrong):
        """A cap of another kind is an error that names it."""
        with pytest.raises(TypeError, match=next(iter(wrong))):
            Budget(**wrong)


class TestProposals:
    """What an agent may propose."""

    @pytest.mark.parametrize("args", [None, 3, ["x"]])
    def test_arguments_are_named_or_text(self, args):
        """Arguments are named values or the model's own text."""
        with pytest.raises(TypeError, match="args"):
            ToolCall("echo", args)

    def test_several_calls_are_at_least_one(self):
        """No calls at all are no proposal."""
        with pytest.raises(ValueError, match="empty"):
            ToolCalls(())

    def test_ids_are_each_calls_own(self):
        """Two calls of one step cannot have the same id."""
        with pytest.raises(ValueError, match="twice"):
            ToolCalls((ToolCall("a", {}, "x"), ToolCall("b", {}, "x")))

    def test_an_answer_is_a_text(self):
        """An answer that is no text is none."""
        with pytest.raises(TypeError, match="text"):
            FinalAnswer(None)

    def test_a_role_is_one_of_four(self):
        """A message has one of the known roles."""
        with pytest.raises(ValueError, match="role"):
            Message("robot", "hello")


class TestConversation:
    """Messages to which one more can be added."""

    def test_adding_leaves_the_shorter_one(self):
        """A conversation never changes."""
        short = Conversation([Message("user", "a")])
        longer = short.append(Message("assistant", "b"))

        assert [1, 2] == [len(short), len(longer)]
        assert ["a", "b"] == [message.content for message in longer]

    def test_two_may_part(self):
        """Two ways to go on from one conversation do not see each other."""
        base = Conversation([Message("user", "a")])
        one = base.append(Message("assistant", "b"))
        other = base.append(Message("assistant", "c"))

        assert ["a", "b"] == [message.content for message in one]
        assert ["a", "c"] == [message.content for message in other]

    def test_a_message_beyond_it_is_not_seen(self):
        """What a longer one added is not there for the shorter one."""
        base = Conversation([Message("user", "a")])
        base.append(Message("assistant", "b"))

        with pytest.raises(IndexError):
            base[1]
        assert (base[0],) == base[:5]

    def test_is_equal_to_the_same_messages(self):
        """It compares as the tuple of its messages, and survives pickling."""
        one = Conversation([Message("user", "a")]).append(Message("assistant", "b"))

        assert one == tuple(one)
        assert pickle.loads(pickle.dumps(one)) == one
        assert one != one[:1]
