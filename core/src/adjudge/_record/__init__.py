"""The record: sinks, the hash chain, its verification, redaction."""
