"""Adjudge's ledger, run store and session store on Redis, for agents on many machines."""

from adjudge_redis._ledger import RedisLedger
from adjudge_redis._stores import RedisRunStore, RedisSessionStore

__all__ = ["RedisLedger", "RedisRunStore", "RedisSessionStore"]
