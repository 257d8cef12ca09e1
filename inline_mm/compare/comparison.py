"""Comparison of tested models: tables, figures and a page."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from ..checkpoint.writing import write_atomically
from ..errors import LaunchError
from .beside_published import compare_with_published, published_rows
from .curves import Curves, read_curves
from .page import make_page
from .rows import Row, make_rows, read_record
from .table import COUNTED, MAIN, SPREAD, TITLES, Section
from .text import (
    classes_csv,
    console_table,
    describe_published,
    rows_csv,
    section_markdown,
)

__all__ = ['Comparison', 'compare', 'compare_files', 'read_record']


@dataclass
class Comparison:
    """Tested models side by side.

    Args:
        sections (list[Section]): one for each task.
        curves (dict[str, list[tuple[str, int, Curves]]]): by task, of each
            run its name, the number of its colour and what it logged.
    """

    sections: list[Section]
    curves: dict[str, list[tuple[str, int, Curves]]]

    @property
    def markdown(self) -> str:
        """str: all tables and remarks."""
        parts = [section_markdown(s) for s in self.sections if s.rows]
        return '\n\n'.join([*parts, SPREAD, COUNTED]) + '\n'

    def show(self, console: Console) -> None:
        """Prints the tables and remarks.

        Args:
            console (Console): where to.
        """
        for section in self.sections:
            if not section.rows:
                continue
            console.print(console_table(section, console.width))
            said = [*section.remarks(), *describe_published(section)]
            for line in said:
                console.print(line, highlight=False, markup=False)
        console.print(SPREAD, highlight=False)

    def write(self, out: Path) -> None:
        """Writes comparison.{md,csv,html} and per_class.csv.

        Args:
            out (Path): the folder, made if need be; its files of these names
                are replaced.

        Raises:
            LaunchError: if there can't be such a folder.
            CheckpointError: if a file can't be written.
        """
        try:
            out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise LaunchError(
                f'--out {out}: the folder can not be made: {error.strerror}'
            ) from None
        page = make_page(self.sections, self.curves)
        for name, text in (
            ('comparison.md', self.markdown),
            ('comparison.csv', rows_csv(self.sections)),
            ('per_class.csv', classes_csv(self.sections)),
            ('comparison.html', page),
        ):
            write_atomically(out / name, text.encode())


def compare(
    records: Sequence[dict],
    out: Path | None = None,
    published: bool = False,
    folders: Sequence[Path] = (),
) -> Comparison:
    """Puts tested models side by side.

    Runs that differ in their seed alone become one row. The first row of
    each task is what the others are compared with.

    Args:
        records (Sequence[dict]): what ``tools/test.py --result`` wrote; a
            'label' names a row, the config's name by default. Training
            curves come from the folder of 'checkpoint', where it has logs.
        out (Path | None): folder for the files. Defaults to None.
        published (bool): add published numbers. Defaults to False.
        folders (Sequence[Path]): work folders of further runs, for their
            curves. Defaults to ().

    Returns:
        Comparison: the tables, also written to `out`.

    Raises:
        LaunchError: in one sentence, what can't be read or written.
    """
    rows = make_rows(records)
    sections, curves = [], {}
    extra = _read_folders(folders)
    for task in TITLES:
        mine = [row for row in rows if row.task == task]
        theirs = [(n, c) for n, c in extra if _task(c) == task]
        if not mine and not theirs:
            continue
        others, found = [], ([], [])
        if published and mine:
            others, found = published_rows(mine), compare_with_published(mine)
        sections.append(Section(task, [*mine, *others], *found))
        curves[task] = _curves_of(mine)
        curves[task] += [
            (name, len(mine) + number, run)
            for number, (name, run) in enumerate(theirs)
        ]
    comparison = Comparison(sections, curves)
    if out is not None:
        comparison.write(out)
    return comparison


def _curves_of(rows: list[Row]) -> list[tuple[str, int, Curves]]:
    found = []
    for number, row in enumerate(rows):
        for folder in dict.fromkeys(row.folders):
            run = read_curves(folder)
            if run is not None:
                found.append((f'{number + 1}  {row.label}', number, run))
    return found


def _read_folders(folders: Sequence[Path]) -> list[tuple[str, Curves]]:
    found = []
    for folder in folders:
        run = read_curves(folder)
        if run is None:
            raise LaunchError(
                f'{folder} has no training log (TIMESTAMP/vis_data/'
                'scalars.json)'
            )
        found.append((folder.name, run))
    return found


def _task(run: Curves) -> str:
    """The task whose scores a run logged; a detector's without any."""
    for task, names in MAIN.items():
        if any(name in run.scores for name in names):
            return task
    return next(iter(MAIN))


def compare_files(
    paths: Sequence[str], out: str | None, published: bool
) -> Comparison:
    """What ``tools/compare.py`` does.

    Args:
        paths (Sequence[str]): records, and work folders for their curves.
        out (str | None): folder for the files.
        published (bool): add published numbers.

    Returns:
        Comparison: the tables.

    Raises:
        LaunchError: with a sentence for each file that can't be read.
    """
    records, wrong = [], []
    folders = [Path(path) for path in paths if Path(path).is_dir()]
    for path in paths:
        if Path(path).is_dir():
            continue
        try:
            records.append(read_record(path))
        except LaunchError as error:
            wrong.append(str(error))
    if wrong:
        raise LaunchError('\n'.join(wrong))
    folder = None if out is None else Path(out)
    return compare(records, folder, published, folders)
