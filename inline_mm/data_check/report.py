"""What the checks found: faults, oddities and counts."""

import logging
import time
from dataclasses import dataclass, field

from mmengine.logging import print_log


class DataError(ValueError):
    """The data or the config that describes them can't be used as they are.

    The message is one sentence for the person at the terminal.
    """


@dataclass
class ImageCount:
    """How many images of a data set are used.

    Attributes:
        name (str): the file or folder that lists the images.
        total (int): images listed.
        kept (int): images used.
        dropped (dict[str, int]): number of images left out, by reason.
    """

    name: str
    total: int
    kept: int
    dropped: dict[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        reasons = ', '.join(
            f'{number} {reason}' for reason, number in self.dropped.items()
        )
        left = f'; left out: {reasons}' if reasons else ''
        return f'{self.kept} of {self.total} images of {self.name} kept{left}'


@dataclass
class Report:
    """The result of a check.

    Attributes:
        faults (list[str]): sentences about what must be mended.
        oddities (list[str]): sentences about what is only odd.
        counts (list[ImageCount]): one for each data set that was read.
        files_read (int): images and masks opened.
        files_seen (int): images and masks that the data sets list.
    """

    faults: list[str] = field(default_factory=list)
    oddities: list[str] = field(default_factory=list)
    counts: list[ImageCount] = field(default_factory=list)
    files_read: int = 0
    files_seen: int = 0

    def log(self) -> None:
        """Logs everything that was found, a line each."""
        for count in self.counts:
            print_log(f'data check: {count}', logger='current')
        for text in self.oddities:
            print_log(
                f'data check: {text}', logger='current', level=logging.WARNING
            )
        for text in self.faults:
            print_log(
                f'data check: {text}', logger='current', level=logging.WARNING
            )

    def sentence(self) -> str:
        """str: the first fault, and how many more there are."""
        more = len(self.faults) - 1
        if not more:
            return self.faults[0]
        faults = '1 more fault' if more == 1 else f'{more} more faults'
        return f'{self.faults[0]} ({faults} in the log)'


class Findings:
    """Collects what is found in one data set.

    Args:
        report (Report): where the findings go.
        name (str): what the sentences begin with, such as 'train'.
        smallest_side (int): pixels that an image's sides must have when it
            comes to the model. Defaults to 0.
    """

    def __init__(
        self, report: Report, name: str, smallest_side: int = 0
    ) -> None:
        self.report = report
        self.name = name
        self.smallest_side = smallest_side
        self._tallies: dict[tuple[str, bool], list] = {}

    def fault(self, text: str) -> None:
        """Notes something that must be mended.

        Args:
            text (str): the sentence.
        """
        self._add(self.report.faults, text)

    def odd(self, text: str) -> None:
        """Notes something that is only odd.

        Args:
            text (str): the sentence.
        """
        self._add(self.report.oddities, text)

    def tally(self, text: str, example: object, fault: bool = False) -> None:
        """Counts one more case of something.

        Args:
            text (str): what it is, in the plural.
            example (object): names this case; the first one is told.
            fault (bool): whether it must be mended. Defaults to False.
        """
        self._tallies.setdefault((text, fault), [0, example])[0] += 1

    def flush(self, place: str) -> bool:
        """Turns the tallies into sentences.

        Args:
            place (str): the file that was counted.

        Returns:
            bool: whether there was no fault among them.
        """
        for (text, fault), (number, example) in self._tallies.items():
            add = self.fault if fault else self.odd
            add(f'{place}: {text} ({number} in all, first {example})')
        clean = not any(fault for _, fault in self._tallies)
        self._tallies.clear()
        return clean

    def _add(self, sentences: list[str], text: str) -> None:
        sentence = f'{self.name}: {text}'
        if sentence not in sentences:
            sentences.append(sentence)


class Progress:
    """Says every few seconds how far a long loop is.

    Args:
        what (str): what is read.
        total (int): how many steps there are.
        every (float): seconds between two lines. Defaults to 5.
    """

    def __init__(self, what: str, total: int, every: float = 5.0) -> None:
        self.what, self.total, self.every = what, total, every
        self.start = self._last = time.monotonic()
        self.done = 0

    def step(self) -> None:
        """Counts a step."""
        self.done += 1
        now = time.monotonic()
        if now - self._last >= self.every:
            self._last = now
            print_log(
                f'data check: {self.what}, {self.done} of {self.total}',
                logger='current',
            )

    @property
    def seconds(self) -> float:
        """float: seconds since the start."""
        return time.monotonic() - self.start


def quote(names, most: int = 8) -> str:
    """Lists names in quotes, the first few of many.

    Args:
        names (Iterable[str]): the names.
        most (int): how many are listed. Defaults to 8.

    Returns:
        str: such as "'a', 'b' and 3 more".
    """
    names = [repr(name) for name in names]
    listed = ', '.join(names[:most])
    more = len(names) - most
    return f'{listed} and {more} more' if more > 0 else listed or 'none'
