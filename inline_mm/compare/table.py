"""The rows of a task as tables of text, and what is to be said of them."""

from collections.abc import Sequence
from dataclasses import dataclass

from .beside_published import Difference
from .facts import describe_differences, list_unknown
from .rows import Row, Value

MISSING = 'n/a'
HEADINGS = dict(
    box_ap='box AP',
    box_ap50='box AP50',
    box_ap75='box AP75',
    mask_ap='mask AP',
    mask_ap50='mask AP50',
    mask_ap75='mask AP75',
    miou='mIoU',
    miou_ms='mIoU, augmented',
    macc='mAcc',
    aacc='aAcc',
    top1='top-1',
    top5='top-5',
    box_ap_s='box AP, small',
    box_ap_m='box AP, medium',
    box_ap_l='box AP, large',
    mask_ap_s='mask AP, small',
    mask_ap_m='mask AP, medium',
    mask_ap_l='mask AP, large',
)
TITLES = dict(
    detection='Detection',
    segmentation='Segmentation',
    classification='Classification',
)
# By task, what the main table has and what follows by size.
SCORES = dict(
    detection=list(HEADINGS)[:6],
    segmentation=['miou', 'miou_ms', 'macc', 'aacc'],
    classification=['top1', 'top5'],
)
SIZES = list(HEADINGS)[-6:]
MAIN = dict(
    detection=('box_ap', 'mask_ap'),
    segmentation=('miou',),
    classification=('top1',),
)
SPREAD = (
    'All scores are in per cent. "41.2 ± 0.3" is the mean of the runs of a '
    'row, which differ in their seeds, and their standard deviation (n - 1); '
    'a score without ± comes from one run and says nothing of its spread.'
)
COUNTED = (
    'FLOPs are multiply-adds of one image; parameters are those of the whole '
    'model. Latency is the median time of the forward in the test, decoding '
    'included.'
)


@dataclass
class Section:
    """The text of one task.

    Args:
        task (str): the task.
        rows (list[Row]): its rows, the measured ones first.
        differences (list[Difference]): measured against published.
        silent (list[str]): why rows aren't compared with published ones.
    """

    task: str
    rows: list[Row]
    differences: list[Difference]
    silent: list[str]

    @property
    def measured(self) -> list[Row]:
        """list[Row]: without what others published."""
        return [row for row in self.rows if not row.published]

    def table(self) -> list[list[str]]:
        """The scores, headings first; columns without a value out."""
        scores = self._filled(SCORES[self.task])
        lines = [
            [str(number), row.label]
            + [show_cell(row, name) for name in scores]
            + ['published' if row.published else str(row.runs)]
            for number, row in enumerate(self.rows, 1)
        ]
        heads = (HEADINGS[name] for name in scores)
        return [['#', 'run', *heads, 'runs'], *lines]

    def costs(self) -> list[list[str]]:
        """How rows were trained and what they cost, headings first."""
        heads = ['#', 'run', 'schedule', 'batch', 'initialisation']
        heads += ['params, M', 'FLOPs, G', 'at', 'ms / image']
        lines = [
            [
                str(number),
                row.label,
                _words(row, 'schedule'),
                _words(row, 'batch').removesuffix(' per step'),
                _words(row, 'initialisation'),
                show_number(row.params, 1),
                show_number(row.flops, 1),
                row.flops_input or MISSING if row.flops else MISSING,
                show_number(row.latency, 1),
            ]
            for number, row in enumerate(self.rows, 1)
        ]
        return [heads, *lines]

    def sizes(self) -> list[list[str]]:
        """Scores by the size of objects; empty without any."""
        scores = self._filled(SIZES)
        if not scores:
            return []
        lines = [
            [str(number), row.label]
            + [show_cell(row, name) for name in scores]
            for number, row in enumerate(self.rows, 1)
            if not row.published
        ]
        return [['#', 'run', *(HEADINGS[name] for name in scores)], *lines]

    def _filled(self, scores: Sequence[str]) -> list[str]:
        return [n for n in scores if any(n in row.scores for row in self.rows)]

    def remarks(self) -> list[str]:
        """In what rows differ from the first one, and what else is known."""
        first = self.rows[0]
        said: dict[str, list[int]] = {}
        for number, row in enumerate(self.rows, 1):
            lines = [*row.notes]
            differences = describe_differences(row, first)
            if differences:
                lines.insert(0, f'unlike row 1 in {", ".join(differences)}')
            unknown = list_unknown(row, first)
            if unknown:
                lines.append(f'unknown {", ".join(unknown)}')
            if row.runs > 1:
                seeds = ', '.join(map(str, row.seeds))
                lines.append(f'runs of the seeds {seeds}')
            for line in lines:
                said.setdefault(line, []).append(number)
        return [f'{_name_rows(rows)}: {line}.' for line, rows in said.items()]

    def against_published(self) -> list[list[str]]:
        """Measured against published, headings first; empty without any."""
        lines = [
            [
                diff.label,
                HEADINGS[diff.score],
                show(diff.measured),
                f'{diff.published:g}',
                f'{diff.measured.mean - diff.published:+.2f}',
            ]
            for diff in self.differences
        ]
        heads = ['run', 'score', 'yours', 'published', 'difference']
        return [heads, *lines] if lines else []

    def about_published(self) -> list[str]:
        """How both sides of :meth:`against_published` were measured."""
        said: dict[str, dict[str, None]] = {}
        for diff in self.differences:
            how = f'{diff.label}: {diff.circumstances}'
            said.setdefault(how, {})[diff.source] = None
        return [
            f'{how}. Published by: {"; ".join(cited)}.'
            for how, cited in said.items()
        ]

    def sources(self) -> list[str]:
        """Where published numbers come from, once each."""
        numbers: dict[str, list[int]] = {}
        for number, row in enumerate(self.rows, 1):
            for cited in {
                ', '.join(filter(None, (s['text'], s['url']))): None
                for s in row.sources.values()
            }:
                numbers.setdefault(cited, []).append(number)
        return [f'{_name_rows(r)}: {cited}' for cited, r in numbers.items()]


def _name_rows(numbers: list[int]) -> str:
    """Such as "Row 2" and "Rows 2, 5 to 7"."""
    spans: list[list[int]] = []
    for number in numbers:
        if spans and spans[-1][-1] == number - 1:
            spans[-1].append(number)
        else:
            spans.append([number])
    words = ', '.join(
        ', '.join(map(str, span))
        if len(span) < 3
        else f'{span[0]} to {span[-1]}'
        for span in spans
    )
    return f'Row{"s" if len(numbers) > 1 else ""} {words}'


def show(value: Value | None) -> str:
    """A score as text, with its spread where there is one."""
    if value is None:
        return MISSING
    if value.std is None:
        return f'{value.mean:.2f}'.removesuffix('0')
    return f'{value.mean:.2f} ± {value.std:.2f} ({value.runs})'


def show_cell(row: Row, name: str) -> str:
    """A score of a row; how many runs have it only if not all of them do."""
    return show(row.scores.get(name)).removesuffix(f' ({row.runs})')


def show_number(value: float | None, digits: int) -> str:
    """A number as text."""
    return MISSING if value is None else f'{value:.{digits}f}'


def _words(row: Row, about: str) -> str:
    fact = row.facts.get(about)
    return fact.words if fact else MISSING
