"""What the labels in masks tell about classes and flags."""

import numpy as np

from .report import Findings, quote


class Labels:
    """The labels of all masks that were read, and what they mean.

    Args:
        dataset (BaseDataset): built without reading its files.
        classes (tuple[str]): its classes.
        found (Findings): takes the findings.
    """

    def __init__(self, dataset, classes: tuple, found: Findings) -> None:
        self.found = found
        self.classes = classes
        self.reduced = bool(dataset.reduce_zero_label)
        self.ignored = {dataset.ignore_index, 255}
        self.map = dataset.label_map
        # A subset of a data set's classes maps the labels of all of them.
        self.number = len(self.map or classes)
        self.first: dict[int, str] = {}  # file by label
        self.files = 0

    def add(self, mask: np.ndarray, path: str) -> None:
        """Notes the labels of a mask.

        Args:
            mask (np.ndarray): shape (H, W).
            path (str): its file.
        """
        self.files += 1
        values = np.unique(mask).tolist()
        for value in values:
            self.first.setdefault(value, path)
        if not any(self._class_of(value) is not None for value in values):
            self.found.tally(
                'masks have no pixel of any class (all ignored)', path
            )

    def _class_of(self, label: int) -> int | None:
        """Index of a label's class; None if it is ignored or out of range."""
        if label in self.ignored:
            return None
        label -= self.reduced
        if not 0 <= label < self.number:
            return None
        label = self.map[label] if self.map else label
        return None if label in self.ignored else label

    def conclude(self, read: int) -> None:
        """Says what the labels together tell.

        Args:
            read (int): how many masks were read.
        """
        labels = sorted(self.first)
        if not labels:
            return
        low, high = int(self.reduced), self.number - 1 + self.reduced
        wrong = [
            label
            for label in labels
            if not low <= label <= high
            and label not in self.ignored
            and not (label == 0 and self.reduced)
        ]
        plain = [label for label in labels if label not in self.ignored]
        if set(labels) == {0, 255} and self.number > 1:
            self._fault_of_0_and_255()
        elif wrong:
            self._fault_of_range(wrong, plain, low, high)
        else:
            self._remark(labels, plain, high, read)

    def _fault_of_0_and_255(self) -> None:
        self.found.fault(
            f'the masks hold only 0 and 255, as {self.first[255]}, and 255 is '
            f'ignored, never a class; of {quote(self.classes, 4)} write 0 for '
            'the first, 1 for the second and so on'
        )

    def _fault_of_range(self, wrong, plain, low: int, high: int) -> None:
        label = wrong[0]
        if (
            not self.reduced
            and plain == [*range(plain[-1] + 1)]
            and (plain[-1] == self.number)
        ):
            fix = (
                "; set reduce_zero_label=True if 0 means 'other', or name "
                f'{self.number + 1} classes'
            )
        else:
            fix = '; change the labels, or name all classes'
        self.found.fault(
            f'label {label} in {self.first[label]} is out of range: with '
            f'{self.number} classes and reduce_zero_label={self.reduced} '
            f'masks may hold {low} to {high}'
            + (' (0 and 255 are' if self.reduced else ' (255 is')
            + f' ignored); these hold {plain[0]} to {plain[-1]}'
            + fix
        )

    def _remark(self, labels, plain, high: int, read: int) -> None:
        seen = {self._class_of(label) for label in labels}
        absent = [c for i, c in enumerate(self.classes) if i not in seen]
        if len(absent) == len(self.classes):
            self.found.fault(
                f'none of the {read} masks read has a pixel of a class; they '
                f'hold {quote(labels, 4)}, which are ignored'
            )
        elif absent:
            self.found.odd(
                f'{len(absent)} of {len(self.classes)} classes have no pixel '
                f'in the {read} masks read: {quote(absent, 3)}'
            )
        if (
            self.reduced
            and 255 in labels
            and 0 in labels
            and (high not in plain)
        ):
            self.found.odd(
                f'the masks hold 0 and 255, as {self.first[255]}, but never '
                f'{high}, the last class; if they are reduced already, 0 '
                'being the first class, set reduce_zero_label=False'
            )
