"""One small model a family, and the sides of any family's outputs."""

# Two blocks a stage where it matters, so that shifted windows, both kinds of
# blocks and drop path all occur.
ARCHS = {
    'InLinePVT': dict(
        embed_dims=(16, 32, 48, 64),
        depths=(2, 1, 2, 1),
        num_heads=(1, 2, 3, 4),
        mlp_ratios=(8, 8, 4, 4),
        pretrain_img_size=64,
    ),
    'InLineSwin': dict(
        embed_dims=16,
        depths=(2, 2, 3, 2),
        num_heads=(1, 2, 4, 8),
        inline_depths=(2, 2, 1, 0),
        softmax_window=3,
        pretrain_img_size=64,
    ),
    'InLineCSwin': dict(
        embed_dims=16,
        depths=(2, 2, 3, 2),
        num_heads=(1, 2, 4, 8),
        inline_depths=(2, 2, 1, 0),
        softmax_window=3,
        pretrain_img_size=64,
    ),
    # Four blocks, so that their indices are those of the others' stages.
    'InLineDeiT': dict(
        embed_dims=32, depth=4, num_heads=4, pretrain_img_size=64
    ),
}
HIERARCHICAL = ('InLinePVT', 'InLineSwin', 'InLineCSwin')


def output_grids(name, size):
    """(H_i, W_i) of the default outputs for images of (H, W) pixels."""
    if name == 'InLineDeiT':
        return [tuple(-(-side // 16) for side in size)]
    grids = []
    for index in range(4):
        size = tuple(_stage_side(name, index, side) for side in size)
        grids.append(size)
    return grids


def _stage_side(name, index, side):
    """Side of stage `index` from that of the stage before."""
    factor = 4 if index == 0 else 2
    if name == 'InLinePVT':
        return side // factor
    if name == 'InLineCSwin' and index == 0:
        return (side + 1) // 4
    return -(-side // factor)
