"""The base of what a user can be told went wrong in a rehearsal."""


class RehearsalProblem(Exception):
    """Something declared cannot be done. The message names the place, the value and the fix."""
