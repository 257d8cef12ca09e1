"""The one error of this package."""


class CheckpointError(RuntimeError):
    """A checkpoint can't be used; the message says why and what to do.

    The message is written for users: tools print it alone and exit with a
    code other than 0.
    """
