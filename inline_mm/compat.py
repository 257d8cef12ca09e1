"""What the supported versions of torch spell differently."""

import torch


def is_compiling() -> bool:
    """Whether a compiler or an exporter reads the code that asks."""
    if hasattr(torch.compiler, 'is_compiling'):
        return torch.compiler.is_compiling()
    return torch._dynamo.is_compiling()  # torch before 2.3


def is_dynamo_compiling() -> bool:
    """The same, for `torch.compile` alone."""
    if hasattr(torch.compiler, 'is_dynamo_compiling'):
        return torch.compiler.is_dynamo_compiling()
    return torch._dynamo.is_compiling()  # torch before 2.3


def is_cpu_autocast_enabled() -> bool:
    """Whether operators on the CPU run in mixed precision."""
    try:
        return torch.is_autocast_enabled('cpu')
    except TypeError:  # torch before 2.4 takes no argument
        return torch.is_autocast_cpu_enabled()
