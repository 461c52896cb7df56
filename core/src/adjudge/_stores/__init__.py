"""The journals of runs and the sessions of agents, in memory and in SQLite."""
