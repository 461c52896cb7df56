"""The memories: what somebody else owns is never read, and what happened is never rewritten."""

import sqlite3
import subprocess
import sys
from collections import UserDict

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adjudge import StoreError
from adjudge_runtime.kernel import (
    Episode,
    EpisodicMemory,
    Fact,
    SemanticMemory,
    SQLiteEpisodicMemory,
    SQLiteSemanticMemory,
)

NAMES = st.sampled_from(["a", "b", "ab", "user", "tenant", "é", "a'--", "a\x1fb", "%"])
SCOPES = st.sampled_from(["user", "tenant", "app"])
FACTS = st.builds(
    Fact,
    key=NAMES,
    value=st.text(max_size=5).map(lambda text: text.encode("utf-8", "ignore").decode()),
    scope=SCOPES,
    owner=NAMES,
    tags=st.lists(NAMES, max_size=3).map(tuple),
)
CALLERS = st.dictionaries(SCOPES, NAMES)
TAGS = st.lists(NAMES, max_size=3)
# One file serves all examples; each begins with other facts under the same keys at most.
REUSES_A_FILE = settings(
    max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)


class Spied(UserDict):
    """Partitions that put down which of them were opened, and refuse to be walked through."""

    def __init__(self):
        super().__init__()
        self.opened = set()

    def get(self, key, default=None):
        """Open one partition, if it is there."""
        self.opened.add(key)
        return self.data.get(key, default)

    def __getitem__(self, key):
        self.opened.add(key)
        return self.data[key]

    def __iter__(self):
        raise AssertionError("A search walked through every partition.")


def expected(facts, scopes, tags, limit):
    """Give what a caller may see, from the list of all facts."""
    latest = {(fact.scope, fact.owner, fact.key): fact for fact in facts}
    seen = [fact for fact in latest.values() if scopes.get(fact.scope) == fact.owner]
    wanted = set(tags)
    ranked = [(-len(wanted & set(fact.tags)), fact.key, fact.scope, fact) for fact in seen]
    ranked.sort(key=lambda row: row[:3])
    return [fact for score, _, _, fact in ranked if score or not wanted][:limit]


@given(facts=st.lists(FACTS, max_size=20), scopes=CALLERS, tags=TAGS, limit=st.integers(0, 6))
def test_a_search_opens_the_partitions_of_its_caller_alone(facts, scopes, tags, limit):
    """Whatever the facts and the caller, no partition that the caller does not hold is opened."""
    partitions = Spied()
    memory = SemanticMemory(partitions)
    for fact in facts:
        memory.put(fact)
    partitions.opened.clear()

    found = memory.search(scopes=scopes, tags=tags, limit=limit)

    assert partitions.opened <= set(scopes.items())
    assert expected(facts, scopes, tags, limit) == found


@REUSES_A_FILE
@given(facts=st.lists(FACTS, max_size=8), scopes=CALLERS, tags=TAGS)
def test_the_file_gives_what_memory_gives(facts, scopes, tags, tmp_path_factory):
    """SQLite answers every search as memory does."""
    memory = SQLiteSemanticMemory(tmp_path_factory.mktemp("facts") / "facts.db")
    for fact in facts:
        memory.put(fact)

    assert expected(facts, scopes, tags, 5) == memory.search(scopes=scopes, tags=tags)


def test_sqlite_never_reads_the_row_of_another_owner(tmp_path):
    """A search goes by the primary key into its own partition; a broken row elsewhere is unseen."""
    path = tmp_path / "facts.db"
    memory = SQLiteSemanticMemory(path)
    memory.put(Fact("k", "mine", "tenant", "one"))
    with sqlite3.connect(path) as database:
        database.execute("INSERT INTO adjudge_facts VALUES ('tenant', 'two', 'k', 'v', 'no json')")
        plan = database.execute(
            "EXPLAIN QUERY PLAN SELECT key, value, tags FROM adjudge_facts"
            " WHERE scope = 'tenant' AND owner = 'one'"
        ).fetchall()
    database.close()

    assert ["mine"] == [fact.value for fact in memory.search(scopes={"tenant": "one"})]
    assert ["SEARCH adjudge_facts USING PRIMARY KEY (scope=? AND owner=?)"] == [r[3] for r in plan]
    with pytest.raises(StoreError):
        memory.search(scopes={"tenant": "two"})


@pytest.fixture(params=["memory", "sqlite"])
def semantic(request, tmp_path):
    """Give each semantic memory in turn."""
    return SemanticMemory() if request.param == "memory" else SQLiteSemanticMemory(tmp_path / "f")


def test_a_fact_is_found_by_its_owner_and_key(semantic):
    """`get` gives the fact of one partition, and nothing of another."""
    semantic.put(Fact("limit", "10", "user", "ana"))

    assert "10" == semantic.get("user", "ana", "limit").value
    assert None is semantic.get("user", "bo", "limit")
    assert None is semantic.get("tenant", "ana", "limit")


def test_a_later_fact_takes_the_place_of_an_earlier_one(semantic):
    """There is one fact for each key of an owner."""
    semantic.put(Fact("limit", "10", "user", "ana"))
    semantic.put(Fact("limit", "20", "user", "ana"))

    assert ["20"] == [fact.value for fact in semantic.search(scopes={"user": "ana"})]


@pytest.mark.parametrize(
    "wrong",
    [{"scopes": {"users": "ana"}}, {"scopes": {"user": ""}}, {"scopes": {}, "limit": -1}],
)
def test_a_search_that_is_none_is_an_error(semantic, wrong):
    """An unknown scope, a missing owner and a negative limit raise, and find nothing."""
    with pytest.raises(ValueError):
        semantic.search(**wrong)


@pytest.mark.parametrize("wrong", [{"scope": "team"}, {"owner": ""}, {"tags": "abc"}, {"value": 1}])
def test_a_fact_that_is_none_is_an_error(wrong):
    """Scope, owner, tags and value of a fact are checked when it is made."""
    with pytest.raises((TypeError, ValueError)):
        Fact(**{"key": "k", "value": "v", "scope": "user", "owner": "o", **wrong})


def test_a_memory_outlives_its_process(tmp_path):
    """What one process put into the file another finds."""
    path = tmp_path / "facts.db"
    program = (
        "import sys; from adjudge_runtime.kernel import Fact, SQLiteSemanticMemory;"
        "SQLiteSemanticMemory(sys.argv[1]).put(Fact('k', 'kept', 'app', 'desk', ('t',)))"
    )
    subprocess.run([sys.executable, "-c", program, str(path)], check=True, timeout=60)

    found = SQLiteSemanticMemory(path).search(scopes={"app": "desk"}, tags=["t"])

    assert [Fact("k", "kept", "app", "desk", ("t",))] == found


@pytest.mark.parametrize("kind", [SQLiteSemanticMemory, SQLiteEpisodicMemory])
def test_a_file_that_cannot_be_used_is_an_error(kind, tmp_path):
    """No path, a folder, and a file that is no database raise `StoreError`."""
    (tmp_path / "text").write_text("no database, but long enough to be read as one" * 100)
    for path in (":memory:", tmp_path, tmp_path / "text"):
        with pytest.raises(StoreError):
            kind(path)


@pytest.fixture(params=["memory", "sqlite"])
def episodic(request, tmp_path):
    """Give each episodic memory in turn."""
    return EpisodicMemory() if request.param == "memory" else SQLiteEpisodicMemory(tmp_path / "e")


def episode(id, *tags, tenant="one"):
    """Make an episode."""
    return Episode(id, f"session-{id}", tenant, "goal", "completed", 3, tags)


def test_the_most_shared_tags_come_first_then_the_latest(episodic):
    """Recall ranks by the tags that are shared, then by how recent an episode is."""
    for each in (episode("a", "x"), episode("b", "x", "y"), episode("c", "x"), episode("d", "z")):
        episodic.record(each)

    found = episodic.recall(["x", "y"], tenant="one")

    assert ["b", "c", "a"] == [each.episode_id for each in found]
    assert ["b"] == [each.episode_id for each in episodic.recall(["x", "y"], tenant="one", limit=1)]


def test_an_episode_of_another_tenant_is_not_recalled(episodic):
    """Two tenants share no episode, whatever tags they share."""
    episodic.record(episode("a", "x"))
    episodic.record(episode("a", "x", tenant="two"))

    assert ["two"] == [each.tenant for each in episodic.recall(["x"], tenant="two")]
    assert [] == episodic.recall(["x"], tenant="three")


def test_an_episode_is_never_rewritten(episodic):
    """The same episode again changes nothing, and another under its id is an error."""
    episodic.record(episode("a", "x"))
    episodic.record(episode("a", "x"))

    with pytest.raises(ValueError):
        episodic.record(episode("a", "y"))
    assert [episode("a", "x")] == episodic.recall(["x", "y"], tenant="one")
