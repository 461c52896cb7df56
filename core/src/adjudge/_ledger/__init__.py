"""Where approvals and pauses are kept: in memory, in SQLite."""
