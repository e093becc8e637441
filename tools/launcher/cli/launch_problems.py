"""What keeps a command line from launching anything, apart from the gates."""


class NoSuchStage(Exception):
    """The graph does not have the stage asked for. The message lists what it has."""


class StageRefused(Exception):
    """A step of the stage is made by nobody at the place. The message names both, and a stage that is."""


class PlaceRefused(Exception):
    """Card, flags and environment give no place to launch at. The message says what is missing."""


class ControllerAddressError(PlaceRefused):
    """What was given as a controller is no address. The message shows one."""


class NotAgreed(Exception):
    """Nobody agreed to the submission. The message says so, and how to agree."""
