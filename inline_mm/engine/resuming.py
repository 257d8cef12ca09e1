"""Going on in the middle of an epoch."""

from collections.abc import Iterator
from itertools import islice

from torch.utils.data import DataLoader


class RemainingBatches:
    """A batch sampler that leaves out batches at its first pass.

    Args:
        batches (Sampler): the batch sampler.
        skip (int): how many batches an interrupted epoch has had.
    """

    def __init__(self, batches, skip: int) -> None:
        self.batches = batches
        self.skip = skip

    def __iter__(self) -> Iterator[list[int]]:
        # A generator: loaders with workers make an iterator that they drop
        # unused, which must not count as the first pass.
        skip, self.skip = self.skip, 0
        yield from islice(self.batches, skip, None)

    def __len__(self) -> int:
        return len(self.batches)

    def __getattr__(self, name: str):
        return getattr(self.batches, name)


def skip_batches(loader: DataLoader, skip: int) -> None:
    """Lets a loader's next epoch begin after some batches.

    No skipped image is read, with or without workers.

    Args:
        loader (DataLoader): the loader.
        skip (int): how many batches.
    """
    # DataLoader refuses to change the attribute once it is built.
    object.__setattr__(
        loader, 'batch_sampler', RemainingBatches(loader.batch_sampler, skip)
    )
