"""The reference driver passes the suite: it is what every framework is held to."""

from adjudge_conformance import Conformance
from adjudge_conformance.reference import ReferenceDriver


class TestConformance(Conformance):
    """ToolGuard alone, in a plain loop."""

    driver = ReferenceDriver
