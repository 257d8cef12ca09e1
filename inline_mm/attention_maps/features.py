"""Queries, keys and values of InLine blocks, as a backbone makes them."""

import re
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ..layers import Block, InLineAttention
from ..layers.attention import NORMALIZATIONS
from ..layers.kernels import apply_kernel
from ..layers.windows import WindowLayout


@dataclass(frozen=True, eq=False)
class Features:
    """What the attention of one block works on, for one image.

    Args:
        name (str): the block's name in the backbone, 'stages.0.blocks.1'.
        queries (Tensor): as the projection makes them, (heads, N, head_dim).
        q (Tensor): after the block's kernel, same shape.
        doubled (Tensor): doubled queries after the kernel, same shape.
        k (Tensor): keys after the kernel, same shape.
        v (Tensor): values, same shape.
        hw_shape (tuple[int, int]): H and W of the grid.
        prefix (int): tokens before those of the grid (DeiT's class token).
        normalization (str): the block's own.
        kernels (Tensor | None): what the local terms weigh the 3x3
            neighbourhood of each channel with, (heads, head_dim, 9): the
            predicted kernels, plus those of LePE in CSwin. None where the
            block has no local term.
    """

    name: str
    queries: Tensor
    q: Tensor
    doubled: Tensor
    k: Tensor
    v: Tensor
    hw_shape: tuple[int, int]
    prefix: int
    normalization: str
    kernels: Tensor | None

    @property
    def place(self) -> tuple[int | None, int]:
        """Stage (None in DeiT) and block, both from 0."""
        return place_of(self.name)

    @property
    def label(self) -> str:
        """Stage and block from 1, such as '1.2'; in DeiT the block."""
        return '.'.join(str(n + 1) for n in self.place if n is not None)


def place_of(name: str) -> tuple[int | None, int]:
    """Stage and block of 'stages.0.blocks.1' or 'blocks.1', from 0."""
    stage, block = re.fullmatch(
        r'(?:stages\.(\d+)\.)?blocks\.(\d+)', name
    ).groups()
    return (None if stage is None else int(stage)), int(block)


def collect(
    backbone: nn.Module, image: Tensor
) -> tuple[list[Features], dict[str, str]]:
    """Runs a backbone on an image and looks into its InLine blocks.

    Args:
        backbone (nn.Module): a backbone of this package, in evaluation mode.
        image (Tensor): one normalised image, (1, 3, H, W).

    Returns:
        tuple[list[Features], dict[str, str]]: of each block that attends to
        the whole map, in order; and by name of the others, why they aren't
        looked at.
    """
    found, others, handles = [], {}, []

    def note(name: str, module: InLineAttention, inputs: tuple) -> None:
        layout = _layout(module, inputs[1])
        if layout is None or layout.counts == (1, 1):
            found.append(_features(name, module, *inputs))
        else:
            size = 'x'.join(map(str, layout.window))
            others[name] = f'InLine attention inside windows of {size} tokens'

    for name, block in backbone.named_modules():
        if not isinstance(block, Block):
            continue
        if isinstance(block.attn, InLineAttention):
            handles.append(
                block.attn.register_forward_hook(
                    lambda module, inputs, _, name=name: note(
                        name, module, inputs
                    )
                )
            )
        else:
            others[name] = f'{type(block.attn).__name__}, not InLine attention'
    try:
        with torch.no_grad():
            backbone(image)
    finally:
        for handle in handles:
            handle.remove()
    return found, others


def _layout(
    module: InLineAttention, hw_shape: tuple[int, int]
) -> WindowLayout | None:
    """The windows of a block, None where it has none."""
    if module.window_size is None:
        return None
    return WindowLayout.fit(
        hw_shape, module.window_size, module.shifted, shrink=True
    )


def _features(
    name: str,
    module: InLineAttention,
    x: Tensor,
    hw_shape: tuple[int, int],
    pooled_from: Tensor | None = None,
) -> Features:
    """From the inputs of a module: its folded form makes no queries."""
    heads = module.num_heads
    qkv = module.qkv(x)[0].unflatten(-1, (3, heads, -1))
    queries, keys, v = qkv.permute(1, 2, 0, 3)
    q, k = apply_kernel(module.kernel, queries, keys)
    return Features(
        name=name,
        queries=queries,
        q=q,
        doubled=apply_kernel(module.kernel, 2 * queries, keys)[0],
        k=k,
        v=v,
        hw_shape=tuple(hw_shape),
        prefix=module.num_prefix_tokens,
        normalization=next(
            key
            for key, function in NORMALIZATIONS.items()
            if function is module.attend
        ),
        kernels=_kernels(module, x if pooled_from is None else pooled_from),
    )


def _kernels(module: InLineAttention, pooled_from: Tensor) -> Tensor | None:
    """Both local terms are 3x3 cross-correlations of the values: one sum."""
    terms = []
    if module.kernel_predictor is not None:
        mean = pooled_from[:1].mean(1, keepdim=True)
        terms.append(module.kernel_predictor(mean.mT).flatten())
    if module.lepe is not None:
        terms.append(module.lepe.weight.flatten())
    if not terms:
        return None
    return sum(terms).view(module.num_heads, -1, 9)
