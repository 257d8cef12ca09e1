"""Tables of READMEs, made of the meta files and of what was published."""

import re
from pathlib import Path

from inline_mm.compare import published

from .metafiles import DATA, FAMILIES, METHODS, SOURCES, parse_name, read

# Metrics as they stand in a cell, by host.
METRICS = dict(
    mmdet=('box_ap', 'mask_ap'), mmseg=('miou', 'macc'), mmpretrain=('top1',)
)
TITLES = dict(
    mmdet='box AP / mask AP',
    mmseg='mIoU / mAcc, single scale',
    mmpretrain='top-1',
)
# The same metrics as meta files of the hosts name them.
NAMES = dict(
    box_ap='box AP',
    mask_ap='mask AP',
    miou='mIoU',
    macc='mAcc',
    top1='Top 1 Accuracy',
)
SIZES = 'TSMBL'
SCHEDULES = {12: '1x', 36: '3x'}
MARKS = '<!-- {}: made by python -m zoo -->', '<!-- {}: end -->'


def pages(root: Path) -> dict[Path, str]:
    """Every page with a table, as it should read.

    Args:
        root (Path): folder with the README and `configs`.

    Returns:
        dict[Path, str]: text by page.

    Raises:
        ValueError: if a page lacks the marks between which a table stands.
    """
    models = read(root)
    recipes = [
        model
        for model in models.values()
        if _folder(model) != 'baselines' and not _is_extra(root, model)
    ]
    page = root / 'README.md'
    result = {page: replace(page, 'zoo', _zoo(recipes))}
    for host in DATA:
        page = root / 'configs' / host / 'README.md'
        baselines = [
            model
            for model in models.values()
            if _folder(model) == 'baselines' and _host(model) == host
        ]
        sources = []
        lines = _table(baselines, host, page.parent, sources)
        text = '\n'.join([*lines, '', _foot(sources)])
        result[page] = replace(page, 'baselines', text)
    return result


def replace(page: Path, name: str, table: str) -> str:
    """The text of a page with another table between its marks.

    Args:
        page (Path): a Markdown file.
        name (str): name of the marks.
        table (str): what shall stand there.

    Returns:
        str: the text.

    Raises:
        ValueError: if the marks aren't there once.
    """
    text = page.read_text(encoding='utf-8')
    begin, end = (re.escape(mark.format(name)) for mark in MARKS)
    found = re.findall(f'{begin}.*?{end}', text, re.S)
    if len(found) != 1:
        raise ValueError(
            f'{page} must have the lines {MARKS[0].format(name)} and '
            f'{MARKS[1].format(name)} once'
        )
    begin, end = (mark.format(name) for mark in MARKS)
    return text.replace(found[0], f'{begin}\n{table}\n{end}')


def _zoo(models: list[dict]) -> str:
    """The tables of the front page, one for each host."""
    sources, lines = [], []
    for host, data in DATA.items():
        chosen = [model for model in models if _host(model) == host]
        lines += [f'**{data}** ({TITLES[host]})', '']
        lines += [*_table(chosen, host, Path(), sources), '']
    return '\n'.join([*lines, _foot(sources)])


def _table(
    models: list[dict], host: str, folder: Path, sources: list[dict]
) -> list[str]:
    size = 'pixels' if host == 'mmpretrain' else 'schedule'
    digits = 1 if host == 'mmpretrain' else 0
    heads = ['config', size, 'parameters', 'multiply-adds', 'paper', *SOURCES]
    rows = [heads, ['---'] * len(heads)]
    for model in sorted(models, key=_order):
        metadata = model['Metadata']
        rows.append(
            [
                f'[{_title(model)}]({_link(model, folder)})',
                _schedule(model),
                f'{metadata["Parameters"] / 1e6:.1f} M',
                f'{metadata["FLOPs"] / 1e9:.{digits}f} G',
                _paper(model, host, sources),
                *(_measured(model, host, source) for source in SOURCES),
            ]
        )
    return ['| ' + ' | '.join(row) + ' |' for row in rows]


def _foot(sources: list[dict]) -> str:
    """What the numbers in brackets mean."""
    words = [
        f'[{number}] {source["text"]}'
        + (f' (<{source["url"]}>).' if source['url'] else '.')
        for number, source in enumerate(sources, 1)
    ]
    return 'Sources of the *paper* column: ' + ' '.join(words)


def _paper(model: dict, host: str, sources: list[dict]) -> str:
    row = published.for_config(model['Name'])
    if row is None:
        return ''
    values = [row['metrics'][metric] for metric in METRICS[host]]
    numbers = []
    for metric, value in zip(METRICS[host], values, strict=True):
        if value is not None:
            source = row['source'][metric]
            if source not in sources:
                sources.append(source)
            numbers.append(sources.index(source) + 1)
    marks = ''.join(f' [{number}]' for number in dict.fromkeys(numbers))
    return _join(values, host) + marks if numbers else ''


def _measured(model: dict, host: str, source: str) -> str:
    found = {}
    for result in model.get('Results', []):
        if result['Source'] == source:
            found |= result['Metrics']
    values = [found.get(NAMES[metric]) for metric in METRICS[host]]
    return _join(values, host) if found else ''


def _join(values: list[float | None], host: str) -> str:
    digits = 2 if host == 'mmseg' else 1
    return ' / '.join('-' if v is None else f'{v:.{digits}f}' for v in values)


def _order(model: dict) -> tuple:
    """Methods and families in the order they are listed in, then sizes."""
    _, method, family, size = parse_name(Path(model['Config']))
    methods, families = list(METHODS.values()), list(FAMILIES.values())
    return (
        methods.index(method) if method else 0,
        families.index(family.removeprefix('InLine-')),
        SIZES.index(size),
        model['Metadata'].get('Epochs', 0),
        model['Name'],
    )


def _title(model: dict) -> str:
    _, method, family, size = parse_name(Path(model['Config']))
    return f'{method} {family}-{size}'.strip()


def _schedule(model: dict) -> str:
    metadata = model['Metadata']
    if _host(model) == 'mmpretrain':
        return metadata['FLOPs Input'].partition('x')[0]
    if 'Epochs' in metadata:
        return SCHEDULES[metadata['Epochs']]
    return f'{metadata["Iterations"] // 1000}k'


def _link(model: dict, folder: Path) -> str:
    """A config's place, from the folder of the page."""
    parts = Path(model['Config']).parts
    return '/'.join(parts[2:] if folder.parts else parts)


def _host(model: dict) -> str:
    return Path(model['Config']).parts[1]


def _folder(model: dict) -> str:
    return Path(model['Config']).parts[2]


def _is_extra(root: Path, model: dict) -> bool:
    """Whether its recipe has no counterpart in the paper."""
    text = (root / model['Config']).read_text(encoding='utf-8')
    return '# Recipe: ours' in text or _title(model).startswith('RetinaNet')
