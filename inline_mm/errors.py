"""What ends a run in a sentence instead of a traceback."""


class LaunchError(ValueError):
    """A mistake in how a run was started, in one sentence."""


class RunStoppedError(Exception):
    """A run that ended before its last iteration, in one sentence.

    Args:
        message (str): what happened, and how to go on.
        signum (int | None): the signal that asked for it. Defaults to None,
            a failure of the training itself.

    Attributes:
        exit_code (int): 128 + the signal's number, as shells have it, or 1.
    """

    def __init__(self, message: str, signum: int | None = None) -> None:
        super().__init__(message)
        self.exit_code = 1 if signum is None else 128 + signum
