"""The random state of a process."""

import random

import numpy as np
import torch


def get_random_state() -> dict:
    """The state of python's, numpy's and torch's generators.

    Returns:
        dict: plain numbers and CPU tensors, which ``torch.load`` reads with
        ``weights_only=True``; 'cuda' (the current device's state) only where
        there is one.
    """
    name, keys, *rest = np.random.get_state()
    state = dict(
        python=random.getstate(),
        numpy=(name, keys.tolist(), *rest),
        torch=torch.get_rng_state(),
    )
    if torch.cuda.is_available():
        state['cuda'] = torch.cuda.get_rng_state()
    return state


def set_random_state(state: dict) -> None:
    """Puts the generators into a state of :func:`get_random_state`.

    Args:
        state (dict): the state, on any device.
    """
    random.setstate(state['python'])
    np.random.set_state(state['numpy'])
    torch.set_rng_state(state['torch'].cpu())
    if 'cuda' in state and torch.cuda.is_available():
        torch.cuda.set_rng_state(state['cuda'].cpu())
