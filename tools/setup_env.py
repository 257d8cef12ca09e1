"""Creates or completes the project's environment: what `make env` runs.

    python tools/setup_env.py                      # .venv, the tested torch
    python tools/setup_env.py --hosts upstream     # .venv-upstream
    python tools/setup_env.py --torch "torch==2.9.1 torchvision==0.24.1"

Each step leaves a stamp in its .setup folder with a hash of what it
installs, so an interrupted run goes on where it stopped and a finished one
returns at once. Standard library only.
"""

import argparse
import importlib
import os
import re
import shlex
import shutil
import sys
import time
from pathlib import Path

from _setup_common import (
    GIGABYTES,
    HOSTS,
    PIP,
    SetupError,
    Step,
    check_compiler,
    check_disk,
    check_torch,
    create,
    interrupt_on_sigterm,
    locked,
    read_text,
    run,
    say,
    started,
    write_whole,
)

ROOT = Path(__file__).resolve().parent.parent
REQUIREMENTS = ROOT / 'requirements'
TOOLS = ('pip', 'setuptools', 'wheel', 'ninja', 'packaging')


class Environment:
    """The virtual environment whose Python runs this, and its steps.

    Args:
        venv (Path): Its folder.
        torch (str): pip's arguments that choose torch and torchvision, or ''
            for the ones chosen before (at first the tested ones).
        name (str): Key in ``HOSTS`` of the line that it gets.
    """

    def __init__(self, venv, torch, name='onedl'):
        self.venv = venv
        self.name = name
        self.hosts = hosts = HOSTS[name]
        self.constraints = REQUIREMENTS / f'constraints{hosts.suffix}.txt'
        groups = [*hosts.groups, f'mm{hosts.suffix}']
        self.files = [REQUIREMENTS / f'{group}.txt' for group in groups]
        self.state = venv / '.setup'
        self.state.mkdir(exist_ok=True)
        self.log = self.state / 'setup.log'
        self.site = next(venv.glob('lib/python3.*/site-packages'))
        chosen = self.state / 'torch.txt'
        if not torch:
            torch = chosen.read_text() if chosen.exists() else hosts.torch
        self.torch = shlex.split(torch)
        check_torch(self.torch, hosts.torch)
        write_whole(chosen, torch)
        self.pip = [*PIP, 'install', '--progress-bar=off']
        self.constrained = [*self.pip, '-c', self.constraints]

    def steps(self):
        """Lists all steps in order."""
        constraints = self.constraints.read_text()
        packages = [path.read_text() for path in self.files]
        names = re.findall(r'^[a-z][\w-]*', '\n'.join(packages), re.M)
        torch = shlex.join(self.torch)
        version = self.hosts.mmcv_version
        mmcv = [version, torch]
        project = [str(ROOT)] + [
            read_text(ROOT / name)
            for name in ('setup.py', 'pyproject.toml', 'inline_mm/version.py')
        ]
        project.append(str((ROOT / 'model-index.yml').exists()))
        steps = [
            Step(
                'tools',
                f'{", ".join(TOOLS)}: a few seconds',
                [*TOOLS, constraints],
                dist_patterns(TOOLS),
                self.install_tools,
            ),
            Step(
                'torch',
                f'{torch}: up to 3 GB to fetch, about 2 min',
                [torch],
                dist_patterns(['torch', 'torchvision']),
                self.install_torch,
            ),
            Step(
                'mmcv',
                f'{self.hosts.mmcv} {version}: compiles its operators',
                mmcv,
                [*dist_patterns([self.hosts.mmcv]), 'mmcv/_ext*.so'],
                self.install_mmcv,
            ),
            Step(
                'packages',
                'mmengine, mmdet, mmseg, mmpretrain and what tests need: '
                'about 1 min',
                [*packages, constraints, *mmcv],
                dist_patterns(names),
                self.install_packages,
            ),
            Step(
                'project',
                'inline_mm itself, editable: a few seconds',
                project + packages,
                dist_patterns(['inline_mm']),
                self.install_project,
            ),
        ]
        keys = [step.key for step in steps]
        text = 'pip check and tools/check_env.py: about 20 s'
        return [*steps, Step('check', text, keys, [], self.check)]

    def stamp(self, step):
        return self.state / f'{step.name}.done'

    def is_done(self, step):
        return read_text(self.stamp(step)) == step.key and all(
            any(self.site.glob(pattern)) for pattern in step.provides
        )

    def complete(self):
        """Runs the steps that are not done; a later one may depend on them.

        Raises:
            SetupError: A step failed, or cannot succeed.
        """
        steps = self.steps()
        pending = [step for step in steps if not self.is_done(step)]
        if not pending:
            say(f'environment ready: {self.venv}')
            return
        names = [step.name for step in pending]
        check_disk(self.venv, GIGABYTES if 'torch' in names else 2)
        if 'mmcv' in names:
            check_compiler()
        version = '.'.join(map(str, sys.version_info[:3]))
        say(f'environment {self.venv} (Python {version}), log: {self.log}')
        self.stamp(steps[-1]).unlink(missing_ok=True)
        begin = time.monotonic()
        temporary = self.state / 'tmp'
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir()
        os.environ['TMPDIR'] = str(temporary)
        for number, step in enumerate(steps, 1):
            if step in pending:
                self.run_step(step, f'[{number}/{len(steps)}]')
        shutil.rmtree(temporary)
        say(f'environment ready after {time.monotonic() - begin:.0f} s')

    def run_step(self, step, label):
        say(f'{label} {step.text}')
        start = time.monotonic()
        self.stamp(step).unlink(missing_ok=True)
        self.remove_half_installed()
        try:
            step.action()
        except SetupError as error:
            raise SetupError(
                f'{error}\nStep {step.name!r} failed (log: {self.log}); once '
                'that is mended, run this again: finished steps are kept'
            ) from None
        write_whole(self.stamp(step), step.key)
        say(f'      done in {time.monotonic() - start:.0f} s')

    def remove_half_installed(self):
        """Makes pip see what it was killed in the middle of as missing.

        pip writes a distribution's INSTALLER after its files, and renames
        what it is about to remove to ``~...``.
        """
        for path in [*self.site.glob('*.dist-info'), *self.site.glob('~*')]:
            if path.is_dir() and not (path / 'INSTALLER').exists():
                shutil.rmtree(path)

    def install_tools(self):
        flags = ['--retries=1', '--timeout=30', '--upgrade']
        try:
            run([*self.constrained, *flags, *TOOLS], self.log)
        except SetupError as error:
            raise SetupError(
                f'{error}\npip cannot reach a package index: connect to the '
                "network, or set pip's index or proxy ('pip config')"
            ) from None

    def install_torch(self):
        # Not above: Python 3.7, which lacks it, is refused in a sentence.
        from importlib import metadata

        if any(part.startswith('-') for part in self.torch):
            # An index given by an option may lack the tested versions.
            run([*self.pip, *self.torch], self.log)
            return
        alone = [*self.constrained, '--no-deps']
        run([*alone, *self.torch], self.log)
        # pip unpacks after it has fetched all: the CUDA libraries in one go
        # would take 2 GB more of disk for a while.
        importlib.invalidate_caches()
        needed = metadata.requires('torch') or []
        large = [x for x in needed if x.startswith(('nvidia-', 'triton'))]
        for first in range(0, len(large), 4):
            run([*alone, *large[first : first + 4]], self.log)
        run([*self.constrained, *self.torch], self.log)

    def install_mmcv(self):
        script = ROOT / 'tools' / 'build_mmcv.py'
        flags = ['--force', '--log', self.log, '--hosts', self.name]
        flags += ['--constraint', self.constraints]
        with started([sys.executable, script, *flags]) as process:
            process.wait()
        if process.returncode:
            raise SetupError('mmcv could not be built, see above')

    def install_packages(self):
        listed = [part for path in self.files for part in ('-r', path)]
        run([*self.constrained, '--no-build-isolation', *listed], self.log)

    def install_project(self):
        flags = ['--no-deps', '--no-build-isolation', '--editable']
        run([*self.pip, *flags, ROOT], self.log)

    def check(self):
        run([*PIP, 'check'], self.log)
        # CPU operators are enough here, also where a GPU is visible.
        hidden = {'CUDA_VISIBLE_DEVICES': ''}
        script = ROOT / 'tools' / 'check_env.py'
        run([sys.executable, script], self.log, hidden)


def dist_patterns(names):
    return [f'{name.replace("-", "_")}-*.dist-info' for name in names]


def enter(venv, newest):
    """Creates the environment if need be, and goes on in its Python.

    Args:
        venv (Path): Its folder.
        newest (int): Minor version of the newest Python that fits.
    """
    python, created = venv / 'bin' / 'python', venv / '.setup' / 'created'
    if python.is_symlink() and not python.exists():
        raise SetupError(
            f'the Python that {venv} was made with is gone '
            f'({os.readlink(str(python))}): remove the folder, run this again'
        )
    with locked(Path(__file__)):
        if not (python.exists() and created.exists()):
            create(venv, newest)
            created.parent.mkdir(exist_ok=True)
            created.touch()
    if Path(sys.prefix).resolve() != venv:
        sys.stdout.flush()
        os.execv(str(python), [str(python), *sys.argv])


def parse_args():
    parser = argparse.ArgumentParser(
        description='Create or complete the environment of the project.'
    )
    parser.add_argument(
        '--hosts',
        choices=HOSTS,
        default='onedl',
        help='line of OpenMMLab (default: %(default)s)',
    )
    parser.add_argument(
        '--venv',
        type=Path,
        help='folder of the environment (default: '
        + ', '.join(f'{h.venv} for {name}' for name, h in HOSTS.items())
        + ')',
    )
    parser.add_argument(
        '--torch',
        default='',
        help='what to give pip for torch and torchvision (default: the '
        'tested ones, or what an earlier run was given)',
    )
    return parser.parse_args()


def main():
    args = parse_args()
    interrupt_on_sigterm()
    # pip would take what it finds there for installed.
    os.environ.pop('PYTHONPATH', None)
    os.environ['PYTHONNOUSERSITE'] = '1'
    hosts = HOSTS[args.hosts]
    venv = (args.venv or ROOT / hosts.venv).resolve()
    try:
        enter(venv, hosts.newest)
        with locked(Path(__file__)):
            Environment(venv, args.torch, args.hosts).complete()
    except SetupError as error:
        print(f'setup_env: {error}', file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print('setup_env: interrupted; run it again to go on', file=sys.stderr)
        return 130
    return 0


if __name__ == '__main__':
    sys.exit(main())
