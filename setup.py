"""Packaging of inline_mm.

The wheel puts one top-level package, ``inline_mm``, into site-packages.
``configs/``, ``tools/`` and ``model-index.yml`` travel inside it as
``inline_mm/.mim/``, where the OpenMMLab libraries keep theirs, so that an
installed wheel has them without a clone.
"""

import os
import re
import shutil
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent
MIM = Path('inline_mm', '.mim')
MIM_SOURCES = ('configs', 'tools', 'model-index.yml')


def read_version():
    """Reads ``__version__`` without importing the package (and torch)."""
    text = (ROOT / 'inline_mm' / 'version.py').read_text(encoding='utf-8')
    return re.search(r"^__version__ = '([^']+)'", text, re.M).group(1)


def read_requirements(name):
    """Reads the requirement lines of ``requirements/{name}.txt``."""
    path = ROOT / 'requirements' / f'{name}.txt'
    lines = (
        line.split('#')[0].strip()
        for line in path.read_text(encoding='utf-8').splitlines()
    )
    return [line for line in lines if line]


def remove(path):
    """Removes a link, a file or a folder, if there is one."""
    if path.is_symlink() or path.is_file():
        path.unlink()
    elif path.is_dir():
        shutil.rmtree(path)


class BuildPyWithMim(build_py):
    """Adds ``inline_mm/.mim``: links when editable, copies otherwise."""

    def run(self):
        super().run()
        # An editable install runs the package where it lies, so the folder
        # goes there (ignored by git); its links follow every edit.
        base = ROOT if self.editable_mode else Path(self.build_lib)
        mim = base / MIM
        remove(mim)
        mim.mkdir(parents=True)
        for name in MIM_SOURCES:
            source, target = ROOT / name, mim / name
            if not source.exists():
                continue
            if self.editable_mode:
                target.symlink_to(os.path.relpath(source, mim))
            elif source.is_dir():
                ignored = shutil.ignore_patterns('__pycache__', '*.pyc')
                shutil.copytree(source, target, ignore=ignored)
            else:
                shutil.copyfile(source, target)


def long_description():
    readme = ROOT / 'README.md'
    return readme.read_text(encoding='utf-8') if readme.exists() else ''


setup(
    name='inline_mm',
    version=read_version(),
    description=(
        'InLine (injective linear attention) backbones for detection, '
        'segmentation and classification with OpenMMLab 2.x'
    ),
    long_description=long_description(),
    long_description_content_type='text/markdown',
    license='Apache-2.0',
    license_files=['LICENSE'],
    python_requires='>=3.10',
    packages=find_packages(include=['inline_mm', 'inline_mm.*']),
    package_data={'inline_mm.compare': ['published.yml']},
    # The mm packages are the extra `mm`, as in the hosts themselves: an
    # environment that has them (from either line) is left as it is.
    install_requires=read_requirements('runtime'),
    extras_require={
        name: read_requirements(name)
        for name in ('mm', 'mm-upstream', 'tests', 'export')
    },
    cmdclass={'build_py': BuildPyWithMim},
    zip_safe=False,
    classifiers=[
        'Programming Language :: Python :: 3',
        'Programming Language :: Python :: 3.10',
        'Programming Language :: Python :: 3.11',
        'Programming Language :: Python :: 3.12',
        'Topic :: Scientific/Engineering :: Artificial Intelligence',
    ],
)
