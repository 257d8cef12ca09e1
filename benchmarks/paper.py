"""What the operation counts mean on a GPU: computed, never measured.

Traffic is counted in passes over a tensor of the layer's size, N x C (all
samples together); matrices of C x C and smaller are left out. Everything is
taken to be in bfloat16, sums in float32.
"""

from dataclasses import dataclass

from .preset import LAYER_SIZES as ALL_SIZES
from .tables import markdown_table

BYTES = 2
# Those of many tokens, where our layer has no queries and keys.
LAYER_SIZES = tuple(
    size for size in ALL_SIZES if size[1] * size[2] > 2 * size[3]
)
# Published figures of NVIDIA's data sheets (SXM): memory bandwidth in bytes
# per second, and dense bfloat16 products of the tensor cores in FLOP/s.
GPUS = {'H100': (3.35e12, 989e12), 'H200': (4.8e12, 989e12)}
SHARED_MEMORY = 227 * 1024
TILES = (16, 8)

# (step, tensors read, tensors written).
PASSES = {
    'straightforward': (
        ('q, k, v in one GEMM', 1, 3),
        ('mean(k), mean(v)', 2, 0),
        ('k scaled', 1, 1),
        ('K^T V', 2, 0),
        ('q M', 1, 1),
        ('+ mean(v)', 1, 1),
        ('heads side by side', 1, 1),
        ('mean of x for the kernels', 1, 0),
        ('v to NCHW', 1, 1),
        ('grouped convolution', 1, 1),
        ('+ convolution', 2, 1),
        ('projection', 1, 1),
    ),
    'ours': (
        ('mean of x', 1, 0),
        # float32 takes two tensors' room.
        ('x centred, in float32', 1, 2),
        ('covariance of x', 2, 0),
        ('v', 1, 1),
        ('depthwise convolution', 1, 1),
        ('+ x A, in place', 2, 1),
        ('projection', 1, 1),
    ),
    'fused': (
        ('moments of x', 1, 0),
        ('v, convolution, + x A, projection', 1, 1),
    ),
}


@dataclass(frozen=True)
class Cost:
    """Cost of one forward pass of a layer.

    Args:
        bytes (float): moved between memory and chip.
        flops (float): a multiply-add counts two.
    """

    bytes: float
    flops: float

    def floor(self, gpu: str) -> float:
        """Seconds below which this can't be."""
        bandwidth, peak = GPUS[gpu]
        return max(self.bytes / bandwidth, self.flops / peak)


def count_passes(form: str) -> int:
    """Tensors of N x C that a form reads and writes, without halos."""
    return sum(reads + writes for _, reads, writes in PASSES[form])


def tile_side(channels: int) -> int | None:
    """Side of the largest tile whose x and v fit into shared memory.

    With a ring of one token around both; None if none fits.
    """
    for side in TILES:
        if 2 * (side + 2) ** 2 * channels * BYTES <= SHARED_MEMORY:
            return side
    return None


def halo(channels: int) -> float | None:
    """Tokens that a tile reads for each that it writes."""
    side = tile_side(channels)
    return side and (side + 2) ** 2 / side**2


def layer_cost(form: str, shape: tuple[int, ...]) -> Cost | None:
    """Cost of a layer on paper.

    Args:
        form (str): 'straightforward', 'ours' or 'fused'.
        shape (tuple[int, ...]): (B, H, W, C, heads).

    Returns:
        Cost: of the forward pass; None for a fused kernel without a tile.
    """
    batch, height, width, channels, heads = shape
    tokens = batch * height * width
    head_dim = channels // heads
    square = tokens * channels**2
    local = 9 * tokens * channels
    passes = count_passes(form)
    if form == 'straightforward':
        macs = 4 * square + 2 * tokens * channels * head_dim + local
    else:
        fold = batch * (channels**3 + 2 * channels**2 * head_dim)
        macs = 4 * square + local + fold
    if form == 'fused':
        ring = halo(channels)
        if ring is None:
            return None
        passes += ring - 1
        macs += (ring - 1) * square
    return Cost(passes * tokens * channels * BYTES, 2 * macs)


def paper_section() -> str:
    """Markdown of the section 'On paper: a GPU'."""
    forms = tuple(PASSES)
    steps = [
        [form, step, str(reads), str(writes)]
        for form in forms
        for step, reads, writes in PASSES[form]
    ]
    sums = ', '.join(f'{form} {count_passes(form)}' for form in forms)
    return '\n\n'.join(
        [
            '**No GPU was measured.** What follows is computed from shapes '
            '(`benchmarks/paper.py`): tensors of N x C '
            'that each step of a forward pass reads and writes in bfloat16 '
            f'(in all: {sums}), with everything of C x C and smaller left '
            'out. At sizes of few tokens for many channels our layer keeps '
            'its queries and keys; they are not in the tables.',
            markdown_table(('form', 'step', 'reads', 'writes'), steps),
            'The floor is the larger of bytes / bandwidth and FLOP / peak, '
            'at the published figures '
            + '; '.join(
                f'{gpu} {bandwidth / 1e12:.2f} TB/s, {peak / 1e12:.0f} '
                'TFLOP/s (dense bfloat16)'
                for gpu, (bandwidth, peak) in GPUS.items()
            )
            + '. It takes every tensor to travel to memory and back: the '
            'smaller ones fit into the 50 MB of level-2 cache, so that '
            'bandwidth binds less than it seems; launches of kernels, a few '
            'microseconds each, are left out and weigh most at small sizes.',
            markdown_table(*_floors(forms)),
            _plan(),
        ]
    )


def _floors(forms: tuple[str, ...]) -> tuple[list, list]:
    titles = ['B, H, W, C, heads']
    titles += [f'{form}: MB, GFLOP' for form in forms]
    titles += [f'{form}: floor us, {"/".join(GPUS)}' for form in forms]
    titles.append('bound on H100')
    rows = []
    for shape in LAYER_SIZES:
        costs = [layer_cost(form, shape) for form in forms]
        amounts = [
            f'{c.bytes / 1e6:.1f}, {c.flops / 1e9:.2f}' if c else 'no tile'
            for c in costs
        ]
        floors = [
            '/'.join(f'{1e6 * c.floor(gpu):.1f}' for gpu in GPUS) if c else '-'
            for c in costs
        ]
        bandwidth, peak = GPUS['H100']
        bounds = [
            'memory' if c.bytes / bandwidth > c.flops / peak else 'products'
            for c in costs
            if c
        ]
        rows.append(
            [
                ', '.join(map(str, shape)),
                *amounts,
                *floors,
                ', '.join(bounds),
            ]
        )
    return titles, rows


def _plan() -> str:
    rows = [
        [
            str(channels),
            str(side or '-'),
            f'{halo(channels):.2f}' if side else '-',
            f'{2 * (side + 2) ** 2 * channels * BYTES / 1024:.0f}'
            if side
            else '-',
            f'{3 * channels**2 * BYTES / 1024:.0f}',
        ]
        for channels in sorted({shape[3] for shape in LAYER_SIZES})
        for side in [tile_side(channels)]
    ]
    return '\n\n'.join(
        [
            'Plan of a Triton kernel for the global and the local part '
            'together:',
            '1. *Moments.* Programs walk over rows of x and add sum(x) and '
            'x^T x of their part in float32, blocks of the C x C result as '
            'a second grid axis where C exceeds 128; parts are added in a '
            'second, small launch. One read of x. Centring uses the mean of '
            'the first tile as an offset, so that a shared mean costs no '
            'digits.\n'
            '2. *Fold.* On matrices of C x C: A, the constant, the 3x3 '
            'kernels. As now, in torch; captured in a CUDA graph with the '
            'rest.\n'
            '3. *Apply.* One program a tile of T x T tokens: read x with a '
            'ring of one token, v = x Wv^T into shared memory (the ring is '
            'computed again by the neighbours), 3x3 taps from shared '
            'memory, + x A, times Wp^T, + constant, written once. Residual '
            'and DropPath can join the write, LayerNorm the read.',
            markdown_table(
                (
                    'C',
                    'T',
                    'tokens read for one written',
                    'x and v, kB',
                    'three matrices, kB',
                ),
                rows,
            ),
            'The matrices are streamed from level-2 cache in blocks where '
            'they do not fit beside the tile. Where products bind already '
            '(last column of the table before), a fused kernel has nothing '
            'to win but launches, and where no tile fits, it falls back to '
            'the form in use. The backward pass would recompute v and take '
            'two such passes. The kernel has not been written, since no '
            'profile of a GPU shows yet that bandwidth is what to win.',
        ]
    )
