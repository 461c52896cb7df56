"""Where the tools of `check` run: in place, in a child process, by route."""
