"""Attention layers and blocks against the official ones, with gradients."""

import re

import pytest
import torch
from golden import (
    GRADIENT_TOLERANCE,
    OUTPUT_TOLERANCE,
    assert_close,
    draw,
    draw_weights,
    load_module_case,
    module_cases,
)
from torch import nn

from inline_mm.layers import (
    Block,
    InLineAttention,
    StripeAttention,
    WindowAttention,
)

CASES = module_cases('swin', 'pvt', 'cswin', 'deit')
NORM_EPS = {'swin': 1e-5, 'pvt': 1e-6, 'cswin': 1e-5, 'deit': 1e-6}
NAMES = {
    'residual.': 'kernel_predictor.',
    'get_v.': 'lepe.',
    'mlp.fc1': 'ffn.layers.0.0',
    'mlp.fc2': 'ffn.layers.1',
}


def rename(key, case):
    if case['family'] == 'cswin' and case['kind'] == 'block':
        key = join_cswin_attention(key, case['args']['attn_type'])
    for official, ours in NAMES.items():
        key = key.replace(official, ours)
    return key


def join_cswin_attention(key, attn_type):
    """The official block holds the projections, its branches the rest."""
    if key.startswith(('qkv.', 'proj.')):
        return f'attn.{key}'
    if attn_type == 'S':
        return re.sub(r'^attns\.(\d)\.get_v', r'attn.lepe.\1', key)
    return key.replace('attns.0.', 'attn.')


def to_ours(weights, case):
    """Official weights of a module under our names; q and kv are joined."""
    ours = {rename(key, case): value for key, value in weights.items()}
    for key in [key for key in ours if '.q.' in f'.{key}']:
        kv_key = key.replace('q.', 'kv.')
        joined = torch.cat([ours.pop(key), ours.pop(kv_key)])
        ours[key.replace('q.', 'qkv.')] = joined
    return ours


def build_attention(family, args):
    shared = dict(embed_dims=args['dim'], num_heads=args['num_heads'])
    shifted = bool(args.get('shift', 0))
    if args.get('attn_type') == 'S' and family == 'cswin':
        width = None if args['last_stage'] else args['split']
        return StripeAttention(stripe_width=width, **shared)
    if args.get('attn_type') == 'S':
        return WindowAttention(
            window_size=args['window'], shifted=shifted, **shared
        )
    return InLineAttention(
        window_size=args.get('window'),
        shifted=shifted,
        num_prefix_tokens=1 if family == 'deit' else 0,
        lepe=family == 'cswin',
        **shared,
    )


def build(case):
    args, family = case['args'], case['family']
    module = build_attention(family, args)
    if case['kind'] == 'block':
        module = Block(
            args['dim'],
            module,
            args['mlp_ratio'],
            NORM_EPS[family],
            pool_input=family == 'cswin' and args['attn_type'] == 'I',
        )
    elif family == 'cswin':
        # This case is what lies between the two projections.
        module.qkv, module.proj = nn.Identity(), nn.Identity()
    return module.eval()


def run(case, dtype):
    module = build(case)
    weights = draw_weights(case['keys'], case['namespace'])
    module.load_state_dict(to_ours(weights, case), strict=True)
    module.to(dtype)
    inputs = {
        name: draw(case['input_names'][name], shape).to(dtype)
        for name, shape in case['inputs'].items()
    }
    for value in inputs.values():
        value.requires_grad_()
    return module, inputs, call(module, case, **inputs)


def call(module, case, x=None, qkv=None, x_mean=None):
    hw_shape = (case['args']['H'], case['args']['W'])
    if qkv is None:
        return module(x, hw_shape)
    projected = qkv.permute(1, 2, 0, 3).flatten(2)
    module.qkv.register_forward_hook(lambda *_: projected)
    tokens = x_mean.unsqueeze(1).expand_as(qkv[0])
    return module(tokens, hw_shape)


@pytest.mark.parametrize('name', CASES)
def test_outputs_and_gradients_equal_the_official_ones(name):
    case, numbers = CASES[name], load_module_case(name)
    module, inputs, out = run(case, torch.float64)
    assert_close(out, numbers, 'out', OUTPUT_TOLERANCE[torch.float64])

    cotangent = draw(case['g_name'], case['out_shape'])
    (out * cotangent).sum().backward()
    for key, value in inputs.items():
        assert_close(value.grad, numbers, f'grad_in/{key}', GRADIENT_TOLERANCE)
    gradients = {key: p.grad for key, p in module.named_parameters()}
    for key in [key for key in numbers if key.startswith('grad/')]:
        name = rename(key.removeprefix('grad/'), case)
        gradient = official_gradient(name, gradients)
        assert_close(gradient, numbers, key, GRADIENT_TOLERANCE)


def official_gradient(name, gradients):
    """Our gradient of an official parameter; q and kv are parts of qkv."""
    if name in gradients:
        return gradients[name]
    part = 'kv' if 'kv.' in name else 'q'
    joined = gradients[name.replace(f'{part}.', 'qkv.')]
    channels = joined.shape[0] // 3
    return joined[channels:] if part == 'kv' else joined[:channels]


@pytest.mark.parametrize('name', CASES)
def test_float32_stays_within_rounding(name):
    _, _, out = run(CASES[name], torch.float32)
    tolerance = OUTPUT_TOLERANCE[torch.float32]
    assert_close(out, load_module_case(name), 'out', tolerance)
