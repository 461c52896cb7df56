"""The wire: a scripted model service on loopback, and readers of what was sent to it.

Nothing here knows a framework, a policy or a case; `ScriptedServer` is of use to anybody who tests
an agent through its real model client.
"""

from adjudge_conformance.wire._request import Api, PastCall, WireRequest
from adjudge_conformance.wire._script import Script, ScriptedCall, Turn, call_id
from adjudge_conformance.wire._server import Exchange, ScriptedServer

__all__ = [
    "Api",
    "Exchange",
    "PastCall",
    "ScriptedCall",
    "Script",
    "ScriptedServer",
    "Turn",
    "WireRequest",
    "call_id",
]
