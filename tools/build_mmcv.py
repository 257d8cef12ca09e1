"""Builds and installs mmcv with compiled operators.

    python tools/build_mmcv.py                   # into the Python that runs it
    python tools/build_mmcv.py --hosts upstream  # mmcv, not onedl-mmcv

torch must be there already. The package index has mmcv as sources:
78 small C++ files, each of which reads all of torch's headers, so that the
plain build takes half an hour on 2 cores. Here they are grouped into a few
units first, which takes 2 minutes; if that fails, the plain build follows.
CUDA operators are built where a GPU is visible (or FORCE_CUDA=1) and nvcc
fits torch's CUDA.
"""

import argparse
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from _setup_common import (
    HOSTS,
    PIP,
    SetupError,
    check_compiler,
    interrupt_on_sigterm,
    run,
    say,
)

# The last files of each unit, relative to csrc/pytorch. These define helpers
# (PreCalc, add) or macros (min, max) that clash within one unit.
LAST_IN_UNIT = (
    ('cpu/roi_align.cpp',),
    ('cpu/roi_align_rotated.cpp',),
    ('cpu/rotated_feature_align.cpp',),
    ('cpu/bezier_align.cpp', 'cpu/psamask.cpp'),
)
# Cost of reading the headers once, in bytes of source, to balance units.
BYTES_PER_FILE = 3000


def plan_cuda():
    """Decides whether CUDA operators are built.

    Returns:
        tuple[bool, str]: The decision and the reason for it.
    """
    import torch

    forced = os.environ.get('FORCE_CUDA') == '1'
    if not torch.version.cuda:
        return False, 'torch is a CPU build'
    if not (forced or torch.cuda.is_available()):
        return False, 'no GPU is visible (FORCE_CUDA=1 builds them anyway)'
    home = os.environ.get('CUDA_HOME')
    nvcc = f'{home}/bin/nvcc' if home else shutil.which('nvcc')
    try:
        text = subprocess.run(
            [nvcc or 'nvcc', '--version'], capture_output=True, text=True
        ).stdout
    except OSError:
        text = ''
    found = re.search(r'release (\d+)\.(\d+)', text)
    if not found:
        return False, 'no nvcc: put it on PATH or set CUDA_HOME'
    nvcc_version = '.'.join(found.groups())
    if found.group(1) != torch.version.cuda.split('.')[0]:
        return False, (
            f'nvcc is CUDA {nvcc_version}, torch is built for '
            f'CUDA {torch.version.cuda}: the major versions must agree'
        )
    return True, f'nvcc {nvcc_version} fits torch (CUDA {torch.version.cuda})'


def count_jobs():
    """Compilers run at once: one per core, and 3 GB of memory each."""
    cores = os.cpu_count() or 1
    if hasattr(os, 'sched_getaffinity'):
        cores = len(os.sched_getaffinity(0))
    memory = os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES')
    return max(1, min(cores, memory // 3_000_000_000))


def group_sources(source):
    """Turns the C++ files of the CPU build into a few ``unity_i.cpp``.

    Args:
        source (Path): The unpacked source archive, changed in place.
    """
    root = source / 'mmcv' / 'ops' / 'csrc' / 'pytorch'
    units = [[root / name for name in names] for names in LAST_IN_UNIT]
    last = {path for unit in units for path in unit}
    rest = [*root.glob('*.cpp'), *root.glob('cpu/*.cpp')]
    rest.sort(key=lambda path: (-path.stat().st_size, path))
    for path in rest:
        if path not in last:
            min(units, key=unit_cost).insert(0, path)
    for index, unit in enumerate(units):
        lines = []
        for path in unit:
            renamed = path.rename(path.with_suffix('.inc'))
            lines.append(f'#include "{renamed.relative_to(root)}"\n')
        (root / f'unity_{index}.cpp').write_text(''.join(lines))


def unit_cost(unit):
    return sum(path.stat().st_size + BYTES_PER_FILE for path in unit)


def build_wheel(work, log, cuda, grouped):
    """Builds the wheel of mmcv.

    Args:
        work (Path): Folder for archive, sources and wheel.
        log (Path): File that gets the output.
        cuda (bool): Whether to build CUDA operators.
        grouped (bool): Whether to group the C++ files first.

    Returns:
        Path: The wheel.
    """
    archive = next(work.glob('*mmcv*.tar.gz'))
    source = work / archive.name[: -len('.tar.gz')]
    shutil.rmtree(source, ignore_errors=True)
    shutil.unpack_archive(archive, work)
    if grouped:
        group_sources(source)
    env = {
        'CFLAGS': f'-g0 -O2 {os.environ.get("CFLAGS", "")}'.strip(),
        'MAX_JOBS': os.environ.get('MAX_JOBS', str(count_jobs())),
        'FORCE_CUDA': '1' if cuda else '0',
    }
    if not cuda:
        # mmcv's setup builds for CUDA wherever torch sees a GPU.
        env['CUDA_VISIBLE_DEVICES'] = ''
    flags = ['--verbose', '--no-deps', '--no-build-isolation']
    run([*PIP, 'wheel', *flags, '-w', work, source], log, env)
    return next(work.glob('*mmcv-*.whl'))


def build(hosts, work, log, constraint):
    """Builds and installs mmcv into the running Python.

    Args:
        hosts (Hosts): The line whose mmcv it is.
        work (Path): Folder for archive, sources and wheel.
        log (Path): File that gets the output of pip and the compilers.
        constraint (Path, optional): pip's constraints file.
    """
    install = [*PIP, 'install']
    if constraint:
        install += ['-c', constraint.resolve()]
    cuda, reason = plan_cuda()
    minutes = 'about 15 min or more' if cuda else 'about 2 min on 2 cores'
    kind = 'CUDA and CPU' if cuda else 'CPU'
    say(f'    mmcv operators for {kind}: {reason}; {minutes}')
    run([*install, hosts.setuptools, 'wheel', 'ninja', 'packaging'], log)
    flags = ['--no-deps', '--no-build-isolation', f'--no-binary={hosts.mmcv}']
    spec = f'{hosts.mmcv}=={hosts.mmcv_version}'
    run([*PIP, 'download', *flags, '-d', work, spec], log)
    try:
        wheel = build_wheel(work, log, cuda, grouped=True)
    except SetupError as error:
        say(
            f'{error}\n    The grouped build failed; the plain one follows '
            '(half an hour on 2 cores).'
        )
        wheel = build_wheel(work, log, cuda, grouped=False)
    run([*install, '--no-deps', '--force-reinstall', wheel], log)
    # Brings the dependencies that are missing.
    run([*install, spec], log)
    run([sys.executable, '-c', 'import mmcv.ops'], log)


def check_host(hosts):
    """Checks for torch, and that no other mmcv is in the way.

    Args:
        hosts (Hosts): The line whose mmcv is wanted.

    Raises:
        SetupError: The operators cannot be built here.
    """
    installed = {
        (dist.metadata['Name'] or '').lower()
        for dist in importlib.metadata.distributions()
    }
    if 'torch' not in installed:
        raise SetupError(
            f'torch is not installed in {sys.prefix}: install it first, '
            "with torchvision, for example 'pip install torch torchvision'"
        )
    clash = sorted(installed.intersection(hosts.others))
    if clash:
        raise SetupError(
            f'{clash[0]} is installed, which owns the same import name as '
            f"{hosts.mmcv}: remove it first ('pip uninstall {clash[0]}')"
        )


def operators_load():
    command = [sys.executable, '-c', 'import mmcv.ops']
    return not subprocess.run(command, capture_output=True).returncode


def parse_args():
    parser = argparse.ArgumentParser(
        description='Build and install mmcv with compiled operators '
        f'into the Python that runs this ({sys.prefix}).'
    )
    parser.add_argument(
        '--hosts',
        choices=HOSTS,
        default='onedl',
        help='line of OpenMMLab whose mmcv is built (default: %(default)s)',
    )
    parser.add_argument(
        '--force',
        action='store_true',
        help='build although the operators load',
    )
    parser.add_argument(
        '-c', '--constraint', type=Path, help="pip's constraints file"
    )
    parser.add_argument(
        '--log',
        type=Path,
        default=Path(tempfile.gettempdir(), 'build_mmcv.log'),
        help='file for the output of pip and the compilers '
        '(default: %(default)s)',
    )
    return parser.parse_args()


def main():
    args = parse_args()
    hosts = HOSTS[args.hosts]
    interrupt_on_sigterm()
    try:
        check_host(hosts)
        if not args.force and operators_load():
            say('mmcv has working operators; --force builds them again')
            return 0
        check_compiler()
        with tempfile.TemporaryDirectory(prefix='build_mmcv_') as work:
            build(hosts, Path(work), args.log.resolve(), args.constraint)
    except SetupError as error:
        print(f'build_mmcv: {error}', file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print('build_mmcv: interrupted; nothing was kept', file=sys.stderr)
        return 130
    say(
        f'    {hosts.mmcv} {hosts.mmcv_version} is installed with its '
        'operators'
    )
    return 0


if __name__ == '__main__':
    sys.exit(main())
