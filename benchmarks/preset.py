"""The sections that `python -m benchmarks goals` measures.

They hold everything that docs/performance.md shows.
"""

from collections.abc import Iterator
from dataclasses import replace

from .run import Case, Section

IMAGE = (1, 800, 1280)
# (B, H, W, C, heads): stages of the tiny models at detection, segmentation
# and classification sizes; below, few tokens for many channels.
LAYER_SIZES = (
    (1, 200, 320, 96, 3),
    (1, 100, 160, 192, 6),
    (1, 50, 80, 384, 12),
    (2, 56, 56, 96, 3),
    (8, 56, 56, 64, 2),
    (1, 200, 320, 64, 2),
    (8, 7, 7, 512, 16),
    (2, 16, 16, 512, 16),
    (1, 25, 40, 512, 16),
    (2, 32, 32, 320, 10),
)
LARGE_LAYERS = (0, 5)
LAYERS = ('inline', 'straightforward', 'gemm2')
SIDES = (224, 512, 800, 1024, 1536, 2048)
# From here on one pass, in the process that also tells the memory.
ONE_PASS_FROM = 1536

PVT = ('inline-pvt-tiny', 'inline-pvt-tiny:straightforward', 'pvt-tiny')
SWIN = ('inline-swin-tiny', 'inline-swin-tiny:straightforward', 'swin-tiny')
BOTH = ('inline-pvt-tiny', 'inline-swin-tiny', 'pvt-tiny', 'swin-tiny')


def goal_sections(
    dtype: str = 'float32', quick: bool = False, softmax: bool = False
) -> list[Section]:
    """The sections of the preset, in order.

    Args:
        dtype (str): 'float32', or autocast's. Defaults to 'float32'.
        quick (bool): sides of an eighth (images) and a quarter (tokens), two
            rounds: to try the tool, not to claim anything. Defaults to False.
        softmax (bool): softmax attention beside the layers, which takes long
            on CPUs. Defaults to False.

    Returns:
        list[Section]: the sections.
    """
    layers = (*LAYERS, 'softmax') if softmax else LAYERS
    sections = [
        *_layer_sections(layers),
        *_detector_sections(),
        _classifier_section(),
        _scaling_section(),
        _profile_section(),
    ]
    return [_adapt(section, dtype, quick) for section in sections]


def _layer_sections(candidates: tuple[str, ...]) -> Iterator[Section]:
    for mode, words in (
        ('eval', 'forward'),
        ('train', 'forward and backward'),
    ):
        yield Section(
            f'layers_{mode}',
            f'Attention layers, {words}',
            'layers',
            candidates,
            tuple(Case(size, mode, repeats=7) for size in LAYER_SIZES),
            baseline='straightforward',
        )


def _detector_sections() -> Iterator[Section]:
    """Time and memory at the size of detectors."""
    sides = 'x'.join(map(str, IMAGE[1:]))
    modes = (('eval', 'inference', 5), ('train', 'training', 3))
    for name, candidates in (('PVT', PVT), ('Swin', SWIN)):
        for mode, words, repeats in modes:
            yield Section(
                f'{name.lower()}_{mode}',
                f'InLine-{name}-T at {sides}, {words}',
                'models',
                candidates,
                (Case(IMAGE, mode, repeats=repeats),),
                baseline=candidates[-1],
            )
    for mode, words, _ in modes:
        yield Section(
            f'memory_{mode}',
            f'Peak memory at {sides}, {words}',
            'models',
            (*PVT, *SWIN),
            (Case(IMAGE, mode, repeats=0),),
            baseline='swin-tiny',
            memory=True,
        )


def _classifier_section() -> Section:
    cases = (('eval', 7), ('train', 5))
    return Section(
        'batch8',
        'Batches of 8 at 224x224',
        'models',
        SWIN,
        tuple(Case((8, 224, 224), mode, repeats=n) for mode, n in cases),
        baseline='swin-tiny',
    )


def _scaling_section() -> Section:
    return Section(
        'scaling',
        f'Latency and memory from {SIDES[0]} to {SIDES[-1]} pixels a side',
        'models',
        BOTH,
        tuple(
            Case((1, side, side), repeats=0 if side >= ONE_PASS_FROM else 3)
            for side in SIDES
        ),
        baseline='swin-tiny',
        memory=True,
    )


def _profile_section() -> Section:
    return Section(
        'profile',
        f'Profile of one pass at {"x".join(map(str, IMAGE[1:]))}',
        'profile',
        (*PVT[:2], *SWIN),
        tuple(Case(IMAGE, mode, repeats=1) for mode in ('eval', 'train')),
        baseline='inline-pvt-tiny',
    )


def _adapt(section: Section, dtype: str, quick: bool) -> Section:
    """A section in another dtype, and smaller."""
    cases = [replace(case, dtype=dtype) for case in section.cases]
    title = section.title
    if quick:
        title += ' (quick: smaller in fact)'
        cases = [
            replace(
                case, shape=_shrink(case.shape), repeats=min(case.repeats, 2)
            )
            for case in cases
        ]
    return replace(section, title=title, cases=tuple(cases))


def _shrink(shape: tuple[int, ...]) -> tuple[int, ...]:
    batch, height, width, *rest = shape
    if rest:
        sides = (max(2, side // 4) for side in (height, width))
    else:
        sides = (max(32, side // 8) for side in (height, width))
    return (batch, *sides, *rest)
