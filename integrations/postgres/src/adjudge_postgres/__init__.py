"""Adjudge's ledger, run store and session store on PostgreSQL, for agents on many machines."""

from adjudge_postgres._ledger import PostgresLedger
from adjudge_postgres._stores import PostgresRunStore, PostgresSessionStore
from adjudge_postgres._table import create_sql

__all__ = ["PostgresLedger", "PostgresRunStore", "PostgresSessionStore", "create_sql"]
