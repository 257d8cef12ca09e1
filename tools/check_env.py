"""Says what is installed, and whether detection can run.

    python tools/check_env.py

Prints the versions that matter, whether mmcv's compiled operators load,
whether two lines of the OpenMMLab packages are mixed, and which GPUs torch
sees. The exit code is not 0 when detection cannot run; the last line is then
the command that mends it.
"""

import argparse
import contextlib
import importlib
import importlib.metadata
import io
import platform
import shlex
import sys
import warnings
from pathlib import Path

from _command import command

ROOT = Path(__file__).resolve().parent.parent
BUILD_MMCV = Path(__file__).resolve().with_name('build_mmcv.py')
# Import name: distribution of the maintained line, those of the other.
LINES = {
    'mmengine': ('onedl-mmengine', ('mmengine', 'mmengine-lite')),
    'mmcv': ('onedl-mmcv', ('mmcv', 'mmcv-full', 'mmcv-lite')),
    'mmdet': ('onedl-mmdetection', ('mmdet',)),
    'mmseg': ('onedl-mmsegmentation', ('mmsegmentation',)),
    'mmpretrain': ('onedl-mmpretrain', ('mmpretrain', 'mmcls')),
}
TORCH = 'torch==2.10.0 torchvision==0.25.0'  # the tested ones
OPTIONAL = ('mmseg', 'mmpretrain')
NAMES = ('torch', 'torchvision', 'numpy', *LINES, 'inline_mm')


def probe(name):
    """Imports a module.

    Args:
        name (str): Its name.

    Returns:
        tuple[str, str]: Its version and '', or '' and why it has none.
    """
    quiet = io.StringIO()
    try:
        with (
            warnings.catch_warnings(),
            contextlib.redirect_stdout(quiet),
            contextlib.redirect_stderr(quiet),
        ):
            warnings.simplefilter('ignore')
            module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name == name:
            return '', 'not installed'
        return '', f'does not import: {error}'
    except Exception as error:  # whatever a broken installation raises
        text = str(error).strip().split('\n')[0]
        return '', f'does not import: {type(error).__name__}: {text}'
    return str(getattr(module, '__version__', 'no version')), ''


def list_distributions():
    return {
        (dist.metadata['Name'] or '').lower().replace('_', '-'): dist.version
        for dist in importlib.metadata.distributions()
    }


def describe_operators():
    """Loads mmcv's compiled operators.

    Returns:
        tuple[bool, str]: Whether they load, and for what they are built or
        why they don't.
    """
    _, error = probe('mmcv.ops')
    if error:
        return False, error
    from mmcv.ops import get_compiling_cuda_version

    cuda = get_compiling_cuda_version()
    return True, 'CPU' if cuda == 'not available' else f'CPU and CUDA {cuda}'


def list_gpus():
    """Names the GPUs that torch sees ([] without torch or GPU)."""
    if probe('torch')[1]:
        return []
    import torch

    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    return [torch.cuda.get_device_name(index) for index in range(count)]


def find_mixture(distributions):
    """Finds distributions of both lines.

    Args:
        distributions (Container[str]): Names of what is installed.

    Returns:
        tuple[list[str], list[str]]: Installed ones of the maintained line
        and of the other.
    """
    ours = [name for name, _ in LINES.values() if name in distributions]
    others = [
        name
        for _, names in LINES.values()
        for name in names
        if name in distributions
    ]
    return ours, others


def mend_missing(names):
    """Returns the command that installs what is missing."""
    if Path(sys.prefix).resolve() == ROOT / '.venv':
        return f'make -C {shlex.quote(str(ROOT))} env'
    python = shlex.quote(sys.executable)
    commands = []
    if 'torch' in names:
        commands.append(f'{python} -m pip install {TORCH}')
    elif 'torchvision' in names:
        torch = f'torch=={importlib.metadata.version("torch")}'
        commands.append(f'{python} -m pip install {torch} torchvision')
    if 'mmcv' in names:
        commands.append(f'{python} {shlex.quote(str(BUILD_MMCV))}')
    rest = [LINES[n][0] for n in names if n in LINES and n != 'mmcv']
    rest += [name for name in names if name == 'numpy']
    if rest:
        commands.append(f'{python} -m pip install {" ".join(rest)}')
    if 'inline_mm' in names:
        commands.append(f'{python} -m pip install {shlex.quote(str(ROOT))}')
    return ' && '.join(commands)


def mend_mixture(ours, others):
    """Returns the command that leaves the maintained line alone there."""
    python = shlex.quote(sys.executable)
    # Both own the same files, so both go before one comes back.
    both = ' '.join(others + ours)
    missing = mend_missing([n for n, (o, _) in LINES.items() if o in ours])
    return f'{python} -m pip uninstall -y {both} && {missing}'


def diagnose(errors, operators, gpus, mixture):
    """Finds the first thing in detection's way.

    Args:
        errors (dict[str, str]): Why a module has no version, by its name.
        operators (tuple[bool, str]): From ``describe_operators``.
        gpus (list[str]): From ``list_gpus``.
        mixture (tuple[list[str], list[str]]): From ``find_mixture``.

    Returns:
        tuple[str, str]: The problem and the command that mends it; two empty
        strings where there is none.
    """
    python = shlex.quote(sys.executable)
    rebuild = f'{python} {shlex.quote(str(BUILD_MMCV))} --force'
    if all(mixture):
        return (
            f'two lines of the same packages are installed: '
            f'{", ".join(mixture[0])} and {", ".join(mixture[1])}',
            mend_mixture(*mixture),
        )
    needed = {n: e for n, e in errors.items() if n not in OPTIONAL}
    missing = [n for n, e in needed.items() if e == 'not installed']
    if missing:
        return f'{", ".join(missing)} not installed', mend_missing(missing)
    for name, error in needed.items():
        return (
            f'{name} {error}',
            f'{python} -m pip install --force-reinstall --no-deps '
            f'{LINES[name][0] if name in LINES else name}',
        )
    if not operators[0]:
        return f"mmcv's operators: {operators[1]}", rebuild
    if gpus and 'CUDA' not in operators[1]:
        return (
            "a GPU is visible, but mmcv's operators are built for the CPU "
            'only: detectors fail on the GPU (CUDA_VISIBLE_DEVICES= hides it)',
            rebuild,
        )
    return '', ''


def main():
    argparse.ArgumentParser(
        description='Print the versions that matter, and whether detection '
        'can run; if not, exit with 1 and print the command that mends it.'
    ).parse_args()
    probes = {name: probe(name) for name in NAMES}
    errors = {name: error for name, (_, error) in probes.items() if error}
    distributions = list_distributions()
    mixture = find_mixture(distributions)
    operators = describe_operators()
    gpus = list_gpus()
    rows = [('python', f'{platform.python_version()} ({sys.executable})')]
    for name, (version, error) in probes.items():
        line, others = LINES.get(name, ('', ()))
        owners = [n for n in (line, *others) if n in distributions]
        owner = f' ({", ".join(owners)})' if owners else ''
        rows.append((name, f'{version or error}{owner}'))
    rows.append(
        ('operators', f'{"yes" if operators[0] else "no"}: {operators[1]}')
    )
    rows.append(('GPU', ', '.join(gpus) or 'none seen'))
    rows.append(('both lines', 'yes' if all(mixture) else 'no'))
    for name, text in rows:
        print(f'{name:12s} {text}')
    problem, command = diagnose(errors, operators, gpus, mixture)
    if problem:
        print(f'\nDetection cannot run: {problem}. This mends it:\n{command}')
        return 1
    print('\nDetection can run.')
    return 0


if __name__ == '__main__':
    with command('check_env.py'):
        sys.exit(main())
