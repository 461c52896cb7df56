"""The affinity router: few sessions move, draining keeps those that are there, all route alike."""

import subprocess
import sys
from statistics import mean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjudge_runtime.kernel import AffinityRouter, NoReplica, UnknownReplica

SESSIONS = [f"session-{number}" for number in range(2_000)]


def routed(router):
    """Route every session as a new one."""
    return {session: router.route(session) for session in SESSIONS}


def test_a_replica_that_comes_takes_its_share_alone():
    """Sessions move to the new replica and to no other, about one in n + 1 of them."""
    router = AffinityRouter([f"r{number}" for number in range(9)])
    before = routed(router)

    router.add("r9")

    moved = {session for session, replica in routed(router).items() if before[session] != replica}
    assert {"r9"} == {router.route(session) for session in moved}
    assert 0.05 < len(moved) / len(SESSIONS) < 0.2


def test_a_replica_that_goes_moves_its_own_sessions_alone():
    """Whoever was on another replica stays there."""
    router = AffinityRouter(["a", "b", "c", "d"])
    before = routed(router)

    router.remove("b")

    after = routed(router)
    stayed = {session for session in SESSIONS if before[session] == after[session]}
    assert {session for session, replica in before.items() if replica != "b"} == stayed


def test_a_draining_replica_takes_no_new_sessions():
    """New sessions go where they would go if it were not there."""
    router = AffinityRouter(["a", "b", "c"])

    router.drain("b")

    assert routed(AffinityRouter(["a", "c"])) == routed(router)
    assert (("b",), ("a", "b", "c")) == (router.draining, router.replicas)


def test_a_draining_replica_keeps_its_sessions():
    """A session that is placed there is routed there until it moves or the replica goes."""
    router = AffinityRouter(["a", "b", "c"])
    placed = routed(router)

    router.drain("b")
    kept = {session: router.route(session, placed_on=at) for session, at in placed.items()}
    router.remove("b")
    gone = {session: router.route(session, placed_on=at) for session, at in placed.items()}

    assert placed == kept
    assert "b" not in gone.values()


def test_a_placed_session_does_not_move_to_a_replica_that_comes():
    """A placement holds as long as its replica is there."""
    router = AffinityRouter(["a", "b"])
    placed = routed(router)

    router.add("c")

    assert placed == {
        session: router.route(session, placed_on=replica) for session, replica in placed.items()
    }


def test_a_drained_replica_can_come_back():
    """Adding it again ends the draining, and everything routes as before."""
    router = AffinityRouter(["a", "b", "c"])
    before = routed(router)

    router.drain("b")
    router.add("b")

    assert (before, ()) == (routed(router), router.draining)


@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["add", "drain", "remove"]), st.sampled_from("abcdef")),
        max_size=20,
    )
)
def test_the_way_to_a_ring_does_not_matter(changes):
    """Whatever came and went, the router is the one that is made of what is left."""
    router = AffinityRouter(["a", "b"], virtual_nodes=8)
    accepting, draining = {"a", "b"}, set()
    for change, name in changes:
        if change == "add":
            router.add(name)
            accepting.add(name)
            draining.discard(name)
        elif name not in accepting | draining:
            with pytest.raises(UnknownReplica):
                getattr(router, change)(name)
        else:
            getattr(router, change)(name)
            accepting.discard(name)
            (draining.add if change == "drain" else draining.discard)(name)

    fresh = AffinityRouter(sorted(accepting), virtual_nodes=8)
    assert tuple(sorted(draining)) == router.draining
    if accepting:
        assert [fresh.route(s) for s in SESSIONS[:50]] == [router.route(s) for s in SESSIONS[:50]]
    else:
        with pytest.raises(NoReplica):
            router.route("session")


def test_another_process_routes_alike():
    """Points come from names alone, and never from a hash that a process salts."""
    program = (
        "from adjudge_runtime.kernel import AffinityRouter;"
        "print(AffinityRouter(['c', 'a', 'b']).distribution(f'session-{n}' for n in range(2000)))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )

    assert f"{AffinityRouter('abc').distribution(SESSIONS)}\n" == ran.stdout


def test_sessions_are_spread():
    """No replica has much more than its share."""
    loads = AffinityRouter([f"r{n}" for n in range(10)], virtual_nodes=256).distribution(SESSIONS)

    assert len(SESSIONS) == sum(loads.values())
    assert max(loads.values()) / mean(loads.values()) < 1.4


@pytest.mark.parametrize("wrong", [{"virtual_nodes": 0}, {"replicas": [""]}, {"replicas": [1]}])
def test_settings_that_are_none_are_errors(wrong):
    """A ring has points, and replicas have names."""
    with pytest.raises(ValueError):
        AffinityRouter(**{"replicas": ["a"], **wrong})
