"""Regular expressions whose cost is bounded, and whose `$` means what it should."""
