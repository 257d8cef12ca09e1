"""What a measurement was made with: machine, versions, settings, code."""

import os
import platform
from hashlib import sha256
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import torch

from inline_mm.version import __version__

PACKAGE = Path(__file__).resolve().parents[1] / 'inline_mm'
MEASURED = ('ops', 'layers', 'models')


def describe_machine(device: str) -> dict:
    """Facts that a table of timings needs beside it.

    Args:
        device (str): the measured device, such as 'cpu' or 'cuda:0'.

    Returns:
        dict: texts and numbers, fit for JSON; 'gpu' is None on the CPU.
    """
    is_gpu = device != 'cpu'
    return dict(
        cpu=_cpu_name(),
        cpu_capability=torch.backends.cpu.get_cpu_capability(),
        cores=os.cpu_count(),
        memory_gb=round(_memory_info('MemTotal') / 1e9, 1),
        gpu=torch.cuda.get_device_name(device) if is_gpu else None,
        tf32=dict(
            matmul=torch.backends.cuda.matmul.allow_tf32,
            cudnn=torch.backends.cudnn.allow_tf32,
            float32_matmul_precision=torch.get_float32_matmul_precision(),
        ),
        system=f'{platform.system()} {platform.machine()}',
        versions={
            'python': platform.python_version(),
            'inline_mm': __version__,
            **{
                name: import_module(name).__version__
                for name in ('torch', 'mmengine', 'mmcv', 'mmdet')
                if find_spec(name) is not None
            },
        },
        code=hash_code(),
    )


def hash_code() -> str:
    """Hash of the sources that decide how fast a backbone of ours is."""
    digest = sha256()
    for folder in MEASURED:
        for path in sorted((PACKAGE / folder).glob('*.py')):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def _cpu_name() -> str:
    try:
        lines = Path('/proc/cpuinfo').read_text().splitlines()
    except OSError:
        lines = []
    names = [line.split(':', 1)[1] for line in lines if 'model name' in line]
    return names[0].strip() if names else platform.processor() or 'unknown'


def _memory_info(key: str) -> int:
    """An entry of /proc/meminfo in bytes; 0 where there is none."""
    try:
        lines = Path('/proc/meminfo').read_text().splitlines()
    except OSError:
        return 0
    entries = dict(line.split(':') for line in lines)
    return int(entries[key].split()[0]) * 1024


def available_memory() -> int:
    """Bytes that can be had without swapping; 0 where nobody says."""
    return _memory_info('MemAvailable')


def load_average() -> list[float]:
    """Load of the last 1, 5 and 15 minutes."""
    return [round(value, 2) for value in os.getloadavg()]
