"""Adjudge's ledger on PostgreSQL, for agents and approvers on many machines."""

from adjudge_postgres._ledger import PostgresLedger
from adjudge_postgres._table import create_sql

__all__ = ["PostgresLedger", "create_sql"]
