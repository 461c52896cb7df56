"""The suite's deliberate faults on the real LangChain: each is noticed by exactly its cases."""

from pathlib import Path

from adjudge_conformance.noticing import STOPPED_BEFORE_THE_BODY, FaultsAreNoticed, driver_in

ALSO = {**STOPPED_BEFORE_THE_BODY, "executes-other-arguments": {"context.of-a-nested-agent"}}
# A call that waits does not come to the guard until it has its answer, so this cannot show.
UNREACHED = frozenset({"takes-native-approval-for-grant"})


class TestFaults(FaultsAreNoticed):
    driver = driver_in(Path(__file__).with_name("test_conformance.py"), "LangChainDriver")
    also = ALSO
    unreached = UNREACHED
