"""The suite's deliberate faults on the real PydanticAI: each is noticed by exactly its cases."""

from pathlib import Path

from adjudge_conformance.noticing import FaultsAreNoticed, driver_in


class TestFaults(FaultsAreNoticed):
    driver = driver_in(Path(__file__).with_name("test_conformance.py"), "PydanticAIDriver")
