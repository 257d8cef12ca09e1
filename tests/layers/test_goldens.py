"""Attention layers and blocks against the official ones, with gradients."""

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

from inline_mm.layers import Block, InLineAttention, WindowAttention

CASES = module_cases('swin', 'pvt')
NORM_EPS = {'swin': 1e-5, 'pvt': 1e-6}
NAMES = {
    'residual.': 'kernel_predictor.',
    'mlp.fc1': 'ffn.layers.0.0',
    'mlp.fc2': 'ffn.layers.1',
}


def rename(key):
    for official, ours in NAMES.items():
        key = key.replace(official, ours)
    return key


def to_ours(weights):
    """Official weights of a module under our names; q and kv are joined."""
    ours = {rename(key): value for key, value in weights.items()}
    for key in [key for key in ours if '.q.' in f'.{key}']:
        kv_key = key.replace('q.', 'kv.')
        joined = torch.cat([ours.pop(key), ours.pop(kv_key)])
        ours[key.replace('q.', 'qkv.')] = joined
    return ours


def build_attention(family, args):
    shared = dict(embed_dims=args['dim'], num_heads=args['num_heads'])
    shifted = bool(args.get('shift', 0))
    if args.get('attn_type') == 'S':
        return WindowAttention(
            window_size=args['window'], shifted=shifted, **shared
        )
    return InLineAttention(
        window_size=args.get('window'), shifted=shifted, **shared
    )


def build(case):
    args = case['args']
    module = build_attention(case['family'], args)
    if case['kind'] == 'block':
        module = Block(
            args['dim'], module, args['mlp_ratio'], NORM_EPS[case['family']]
        )
    return module.eval()


def run(case, dtype):
    module = build(case)
    weights = draw_weights(case['keys'], case['namespace'])
    module.load_state_dict(to_ours(weights), strict=True)
    module.to(dtype)
    x = draw(case['input_names']['x'], case['inputs']['x']).to(dtype)
    x.requires_grad_()
    out = module(x, (case['args']['H'], case['args']['W']))
    return module, x, out


@pytest.mark.parametrize('name', CASES)
def test_outputs_and_gradients_equal_the_official_ones(name):
    case, numbers = CASES[name], load_module_case(name)
    module, x, out = run(case, torch.float64)
    assert_close(out, numbers, 'out', OUTPUT_TOLERANCE[torch.float64])

    cotangent = draw(case['g_name'], case['out_shape'])
    (out * cotangent).sum().backward()
    assert_close(x.grad, numbers, 'grad_in/x', GRADIENT_TOLERANCE)
    gradients = {key: p.grad for key, p in module.named_parameters()}
    for key in [key for key in numbers if key.startswith('grad/')]:
        gradient = official_gradient(key.removeprefix('grad/'), gradients)
        assert_close(gradient, numbers, key, GRADIENT_TOLERANCE)


def official_gradient(key, gradients):
    """Our gradient of an official parameter; q and kv are parts of qkv."""
    name = rename(key)
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
