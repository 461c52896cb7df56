"""The subcommands of `adjudge` that this distribution brings."""
