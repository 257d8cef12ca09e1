"""Where the time of a backbone's pass goes, operator by operator."""

import warnings

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile

from .run import Case, Options, make_inputs, make_step

SHOWN = 12
PRODUCTS = {
    f'aten::{name}' for name in ('addmm', 'baddbmm', 'baddbmm_', 'bmm', 'mm')
}


def profile_model(model: nn.Module, case: Case, options: Options) -> dict:
    """Profiles one pass after a warm-up.

    Args:
        model (nn.Module): a backbone.
        case (Case): what it is given.
        options (Options): how; the GPU's own time counts on GPUs.

    Returns:
        dict: 'total' seconds, those in matrix 'products', and 'operators',
        the longest, each with its 'name', 'seconds' without those inside, and
        'calls'.
    """
    inputs = make_inputs('models', case, options.device)
    step = make_step(model, inputs, case)
    step()
    model.zero_grad(set_to_none=True)
    on_cpu = options.device == 'cpu'
    activities = [ProfilerActivity.CPU]
    if not on_cpu:
        activities.append(ProfilerActivity.CUDA)
    with warnings.catch_warnings():
        # On cycles of events; there is one.
        warnings.simplefilter('ignore', UserWarning)
        with profile(activities=activities) as profiler:
            step()
            if not on_cpu:
                torch.cuda.synchronize(options.device)
    key = 'self_cpu_time_total' if on_cpu else 'self_device_time_total'
    events = [
        dict(
            name=event.key,
            seconds=getattr(event, key) / 1e6,
            calls=event.count,
        )
        for event in profiler.key_averages()
    ]
    events.sort(key=lambda event: -event['seconds'])
    total = sum(event['seconds'] for event in events)
    products = sum(
        event['seconds'] for event in events if event['name'] in PRODUCTS
    )
    return dict(total=total, products=products, operators=events[:SHOWN])
