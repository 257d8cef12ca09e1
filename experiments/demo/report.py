"""Table, curves and page of the demonstration."""

import json
from html import escape
from statistics import median

import matplotlib

matplotlib.use('Agg')
import matplotlib.pyplot as plt
from rich.table import Table

NOTES = (
    'These are numbers of a demonstration, measured on its own training '
    'images after a few minutes of training. They show that training, '
    'testing and drawing work; they do not compare the methods.',
    'The run "frozen (control)" is the same with the backbone left at its '
    'random start. On so few images the neck and the heads reach as much by '
    'themselves, so a high AP alone does not show that a backbone learns. '
    '"Moved" counts the parameter tensors of the backbone that training '
    'changed.',
    'AP is between 0 and 1, as mmdet logs it; mIoU is in per cent, over the '
    'classes that occur. s / iteration is the median of the logged times, '
    'loading included; other work on the machine raises it.',
    'A multiply-add counts as one (as mmengine counts; others count two '
    'FLOPs), for one image of the given size (height x width, padded), with '
    'the detection heads. Not counted: RoIAlign, NMS, softmax, activations '
    'and elementwise operators.',
)
COLORS = ('#0072b2', '#e69f00', '#7f7f7f', '#009e73')


def read_scalars(path):
    """Records of mmengine's ``scalars.json``: one JSON object per line."""
    with open(path, encoding='utf-8') as f:
        return [json.loads(line) for line in f]


def seconds_per_iteration(records):
    """Median of the logged times, so that the first iterations don't count."""
    return median(r['time'] for r in records if 'loss' in r)


def series(records, key):
    """Iterations and values of one logged number."""
    found = [(r['step'], r[key]) for r in records if key in r]
    return [step for step, _ in found], [value for _, value in found]


def facts(row):
    """One result as text, fact by fact.

    Args:
        row (dict): As ``demo_run.execute`` returns.

    Returns:
        dict: Name of the fact to its text, in the table's order.
    """
    moved, tensors = row['backbone_tensors_moved'], row['backbone_tensors']
    height, width = row['size']
    return {
        'backbone': row['arch'],
        'parameters, backbone': f'{row["backbone_params"] / 1e6:.2f} M',
        'parameters, model': f'{row["params"] / 1e6:.2f} M',
        'multiply-adds, backbone': f'{row["backbone_macs"] / 1e9:.3f} G',
        'multiply-adds, model': f'{row["macs"] / 1e9:.3f} G',
        'at input size': f'{height}x{width}',
        's / iteration': f'{row["seconds_per_iteration"]:.3f}',
        'measured on': f'{row["device"]}, {row["threads"]} thread(s)',
        **{name: f'{value:g}' for name, value in row['metrics'].items()},
        'initialised': f'{row["init"]}, seed {row["seed"]}',
        'trained on': row['data'],
        'tested on': 'the same images',
        'iterations': f'{row["iterations"]} of {row["batch_size"]} images',
        'backbone tensors moved': f'{moved} of {tensors}',
    }


def group_by_task(results):
    """Results in tables: those with the same metrics share one."""
    groups = {}
    for row in results:
        groups.setdefault(tuple(row['metrics']), []).append(row)
    return list(groups.values())


def lines(rows):
    """One task's table, line by line: a fact's name, then its texts."""
    columns = [facts(row) for row in rows]
    return [
        (name, *(column[name] for column in columns)) for name in columns[0]
    ]


def console_tables(results):
    """One rich table per task, a column per run.

    Returns:
        list[Table]: To be printed with a rich console.
    """
    tables = []
    for rows in group_by_task(results):
        table = Table('')
        for row in rows:
            table.add_column(row['title'])
        for line in lines(rows):
            table.add_row(*line)
        tables.append(table)
    return tables


def draw_curves(results, out, path):
    """Draw loss and test metric over iterations, a column per task.

    Args:
        results (list[dict]): As ``demo.execute`` returns.
        out (Path): The demonstration's folder.
        path (Path): The image to write.
    """
    detection = [r for r in results if 'box AP' in r['metrics']]
    segmentation = [r for r in results if 'mIoU (%)' in r['metrics']]
    tasks = (
        (
            'Mask R-CNN, 8 COCO images',
            detection,
            'AP (0 to 1)',
            {
                'coco/bbox_mAP': ('box AP', '-'),
                'coco/segm_mAP': ('mask AP', '--'),
            },
        ),
        (
            'Semantic FPN, 3 ADE20K pairs',
            segmentation,
            'mIoU (%)',
            {
                'mIoU': ('mIoU', '-'),
            },
        ),
    )
    fig, axes = plt.subplots(2, 2, figsize=(12, 8), sharex='col')
    for (title, rows, ylabel, metrics), (top, bottom) in zip(
        tasks, axes.T, strict=True
    ):
        for row in rows:
            color = COLORS[results.index(row)]
            name = row['title'].split(', ', 1)[1]
            records = read_scalars(out / row['scalars'])
            top.plot(*series(records, 'loss'), color=color, label=name)
            for key, (metric, style) in metrics.items():
                bottom.plot(
                    *series(records, key),
                    style,
                    marker='o',
                    markersize=4,
                    color=color,
                    label=f'{name}: {metric}',
                )
        top.set(title=title, ylabel='training loss')
        bottom.set(xlabel='iteration', ylabel=ylabel, ylim=(0, None))
        for axis in (top, bottom):
            axis.grid(alpha=0.3)
            axis.legend(fontsize=9)
    fig.suptitle(
        'Demonstration: measured on the images it was trained on', fontsize=12
    )
    fig.tight_layout()
    fig.savefig(path, dpi=120)
    plt.close(fig)


def html_table(rows):
    """One task's table, a column per run."""
    head = ''.join(f'<th>{escape(row["title"])}</th>' for row in rows)
    parts = ['<table>', f'<tr><th></th>{head}</tr>']
    for name, *texts in lines(rows):
        cells = ''.join(f'<td>{escape(text)}</td>' for text in texts)
        parts.append(f'<tr><th>{escape(name)}</th>{cells}</tr>')
    return '\n'.join([*parts, '</table>'])


def html_drawings(rows):
    """Drawn images of one task, a column per run."""
    head = ''.join(f'<th>{escape(row["title"])}</th>' for row in rows)
    parts = ['<table class="drawings">', f'<tr>{head}</tr>']
    for paths in zip(*(row['drawings'] for row in rows), strict=True):
        cells = ''.join(
            f'<td><a href="{path}"><img src="{path}" alt="{path}"></a></td>'
            for path in map(escape, paths)
        )
        parts.append(f'<tr>{cells}</tr>')
    return '\n'.join([*parts, '</table>'])


def write_page(results, path):
    """Write the page that shows everything.

    Args:
        results (list[dict]): As ``demo.execute`` returns.
        path (Path): The HTML file to write, in the demonstration's folder.
    """
    groups = group_by_task(results)
    parts = [
        '<!DOCTYPE html><html lang="en"><meta charset="utf-8">',
        '<title>inline_mm demonstration</title>',
        '<style>body {font-family: sans-serif; margin: 2em}',
        'p {max-width: 60em} img {max-width: 100%}',
        'table {border-collapse: collapse; margin: 1em 0}',
        '.drawings {table-layout: fixed; width: 100%}',
        'td, th {border: 1px solid #bbb; padding: .3em .6em;',
        'text-align: left; vertical-align: top}</style>',
        '<h1>inline_mm demonstration</h1>',
        f'<p><b>{escape(NOTES[0])}</b></p>',
        *(html_table(rows) for rows in groups),
        *(f'<p>{escape(note)}</p>' for note in NOTES[1:]),
        '<h2>Loss and accuracy</h2>',
        '<img src="curves.png" alt="curves">',
        '<h2>Drawn results</h2>',
        '<p>Left half: the annotation. Right half: what the model says '
        '(detections with a score above 0.3).</p>',
        *(html_drawings(rows) for rows in groups),
        '<h2>The same runs, one by one</h2><pre>',
        *(f'python tools/train.py {escape(r["config"])}' for r in results),
        '</pre>',
    ]
    path.write_text('\n'.join(parts) + '\n', encoding='utf-8')
