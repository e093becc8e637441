"""Exit statuses of the launcher. They are part of its interface and do not change meaning."""

OK = 0
"""Done: planned, submitted, verified, or already so."""

FAILED = 1
"""The run failed, or is not verified; of a build: preflight refused it; of `diff`: the two differ."""

USAGE = 2
"""The command line, or a file named on it, is wrong. Nothing was done."""

REFUSED = 3
"""Nothing was started: another job has the name, the scheduler or a gate refused."""

UNKNOWN = 4
"""It could not be found out what happened. Call again: that looks before it acts."""

INTERRUPTED = 130
"""Ctrl-C. The run goes on."""

OUTPUT_CLOSED = 141
"""Whoever read the output stopped reading (`| head`). The run goes on."""

TERMINATED = 143
"""SIGTERM. The run goes on."""
