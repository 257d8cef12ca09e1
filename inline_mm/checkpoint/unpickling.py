"""Unpickling without executing anything that a file brings along.

Official files pickle their optimizer, scheduler and a yacs config next to the
weights; mmengine's pickle log buffers. Tensors are rebuilt, everything else
becomes an inert placeholder: no class of the file is imported, no function
but those of `_ALLOWED` is called.

`torch.load(weights_only=True)` refuses such files as a whole, and placeholders
can't be registered for all of them (it doesn't fill dict subclasses).
"""

import pickle
from collections import Counter, OrderedDict
from functools import partial

import torch

# What tensors and plain containers are made of. Classes and functions leave
# `find_class` wrapped, so that a file can't set attributes on them.
_ALLOWED = {
    ('collections', 'OrderedDict'): OrderedDict,
    ('collections', 'Counter'): Counter,
    ('builtins', 'set'): set,
    ('builtins', 'frozenset'): frozenset,
    ('builtins', 'complex'): complex,
    ('builtins', 'slice'): slice,
    ('torch', 'Size'): torch.Size,
    ('torch', 'device'): torch.device,
    ('torch._utils', '_rebuild_tensor'): torch._utils._rebuild_tensor,
    ('torch._utils', '_rebuild_tensor_v2'): torch._utils._rebuild_tensor_v2,
    ('torch._utils', '_rebuild_parameter'): torch._utils._rebuild_parameter,
}


class Placeholder:
    """Stands for any object that isn't a tensor or a plain container."""

    # With `__init__` overridden, `object.__new__` takes any arguments too.
    def __init__(self, *args):
        pass

    def __call__(self, *args):
        return self

    def __setstate__(self, state):
        pass

    def __setitem__(self, key, value):
        pass

    def append(self, item):
        pass

    def extend(self, items):
        pass

    def add(self, item):
        pass


class Unpickler(pickle.Unpickler):
    """`pickle.Unpickler` whose globals are tensors or placeholders."""

    def find_class(self, module: str, name: str):
        """The allowed object of this name, or a new class without effect."""
        if (module, name) in _ALLOWED:
            return partial(_ALLOWED[module, name])
        if module == 'torch' and isinstance(
            getattr(torch, name, None), torch.dtype
        ):
            return getattr(torch, name)
        return type(name, (Placeholder,), {'__module__': module})


def load(file, encoding: str = 'utf-8'):
    """`pickle.load` with `Unpickler`: makes this a torch `pickle_module`."""
    return Unpickler(file, encoding=encoding).load()
