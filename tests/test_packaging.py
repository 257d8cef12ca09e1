"""The wheel, the source archive and the editable install."""

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parent.parent
PACKED = (
    'inline_mm',
    'configs',
    'tools',
    'requirements',
    'setup.py',
    'pyproject.toml',
    'MANIFEST.in',
    'LICENSE',
    'README.md',
    'model-index.yml',
)
PIP = [sys.executable, '-m', 'pip', '--disable-pip-version-check']


def run(command, cwd, **environment):
    result = subprocess.run(
        command,
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | environment,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def build(kind, project, out):
    """Calls the build back end's hook, as pip does."""
    code = f'import setuptools.build_meta as b; b.build_{kind}({str(out)!r})'
    out.mkdir()
    run([sys.executable, '-c', code], project)
    return next(out.iterdir())


def files_below(folder):
    return {
        path.relative_to(folder.parent).as_posix()
        for path in folder.rglob('*')
        if path.is_file() and '__pycache__' not in path.parts
    }


@pytest.fixture(scope='module')
def project(tmp_path_factory):
    """A copy of what is packed, in which building may leave its traces."""
    copy = tmp_path_factory.mktemp('packaging') / 'project'
    copy.mkdir()
    ignore = shutil.ignore_patterns('.mim', '__pycache__')
    for name in PACKED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, copy / name, ignore=ignore)
        elif source.exists():
            shutil.copyfile(source, copy / name)
    return copy


@pytest.fixture(scope='module')
def wheel(project):
    return build('wheel', project, project.parent / 'wheel')


def test_wheel_has_one_top_level(wheel):
    with zipfile.ZipFile(wheel) as content:
        names = content.namelist()
    top = {name.split('/')[0] for name in names}
    assert top == {'inline_mm', 'inline_mm-0.1.0.dist-info'}
    assert not [name for name in names if '__pycache__' in name]


def test_wheel_has_every_module_config_and_tool(wheel, project):
    with zipfile.ZipFile(wheel) as content:
        names = set(content.namelist())
    assert files_below(project / 'inline_mm') <= names
    for folder in ('configs', 'tools'):
        expected = files_below(project / folder)
        assert expected, folder
        assert {f'inline_mm/.mim/{name}' for name in expected} <= names


FROM_THE_WHEEL = """
import sys
from mmengine.config import Config
import inline_mm
from inline_mm.compare import published
from inline_mm.engine.launch import find_config
from mmengine.config.utils import _get_cfg_metainfo

# As OpenMMLab's package manager looks a config up.
wanted = 'mmdet/inline_pvt/mask-rcnn_inline-pvt-t_fpn_1x_coco.py'
entry = _get_cfg_metainfo(inline_mm.__path__[0], wanted)
assert entry['Metadata']['Epochs'] == 12, entry
assert published.rows()
config = find_config('mask-rcnn_inline-pvt-t_fpn_1x_coco')
backbone = Config.fromfile(config).model.backbone
assert backbone.type == 'InLinePVT', backbone
print(inline_mm.__file__, config, sep='\\n')
"""


def test_unpacked_wheel_finds_its_configs_and_tools(wheel, tmp_path):
    """From an empty folder, ahead of any other copy that is installed."""
    site, empty = tmp_path / 'site', tmp_path / 'empty'
    empty.mkdir()
    with zipfile.ZipFile(wheel) as content:
        content.extractall(site)
    path = dict(PYTHONPATH=str(site))
    out = run([sys.executable, '-c', FROM_THE_WHEEL], empty, **path)
    module, config = (Path(line) for line in out.splitlines()[-2:])
    mim = site / 'inline_mm' / '.mim'
    assert module == site / 'inline_mm' / '__init__.py'
    assert config.is_relative_to(mim / 'configs')
    for tool in ('train', 'convert_checkpoint'):
        out = run(
            [sys.executable, mim / 'tools' / f'{tool}.py', '--help'],
            empty,
            **path,
        )
        assert f'usage: {tool}.py' in out


def test_source_archive_gives_the_same_wheel(wheel, project):
    archive = build('sdist', project, project.parent / 'sdist')
    unpacked = project.parent / 'unpacked'
    shutil.unpack_archive(archive, unpacked)
    source = next(unpacked.iterdir())
    again = build('wheel', source, project.parent / 'again')
    with zipfile.ZipFile(wheel) as one, zipfile.ZipFile(again) as other:
        assert sorted(one.namelist()) == sorted(other.namelist())


def test_editable_install_links_and_wheels_still_copy(wheel, project):
    build('editable', project, project.parent / 'editable')
    mim = project / 'inline_mm' / '.mim'
    assert (mim / 'configs').is_symlink()
    assert (mim / 'configs').resolve() == project / 'configs'
    again = build('wheel', project, project.parent / 'after-editable')
    with zipfile.ZipFile(wheel) as one, zipfile.ZipFile(again) as other:
        assert sorted(one.namelist()) == sorted(other.namelist())


def test_installing_beside_the_hosts_changes_nothing_else(wheel):
    """Without an index: whatever was missing would be an error."""
    flags = ['--dry-run', '--no-index', '--force-reinstall', '--no-deps']
    run([*PIP, 'install', *flags, wheel], wheel.parent)
    extras = f'inline_mm[mm,tests,export] @ {wheel.as_uri()}'
    out = run([*PIP, 'install', '--dry-run', '--no-index', extras], '/')
    assert re.search(r'Would install inline.mm-0\.1\.0$', out, re.M), out


@pytest.mark.parametrize(
    ('suffix', 'extras'),
    [('', ('mm', 'tests', 'export')), ('-upstream', ('mm', 'tests'))],
)
def test_constraints_are_a_set_that_the_extras_allow(suffix, extras):
    pins = read_requirements(f'constraints{suffix}')
    exact = {pin.name: str(pin.specifier).removeprefix('==') for pin in pins}
    for pin in pins:
        assert str(pin.specifier).startswith('=='), pin
    for extra in extras:
        name = f'mm{suffix}' if extra == 'mm' else extra
        for requirement in read_requirements(name):
            if requirement.name != 'torchvision':
                assert exact[requirement.name] in requirement.specifier


def test_versions_written_twice_agree():
    common = (ROOT / 'tools' / '_setup_common.py').read_text()
    for name in ('onedl-mmcv', 'mmcv'):
        version = re.search(rf"'{name}',\s+'([\d.]+)'", common).group(1)
        suffix = '' if name == 'onedl-mmcv' else '-upstream'
        pins = {p.name: p for p in read_requirements(f'constraints{suffix}')}
        assert pins[name].specifier == f'=={version}'
    check = (ROOT / 'tools' / 'check_env.py').read_text()
    torch = re.search(r"^TORCH = '(.+?)'", check, re.M).group(1)
    assert f"'{torch}'" in common


def read_requirements(name):
    text = (ROOT / 'requirements' / f'{name}.txt').read_text()
    return [
        Requirement(line)
        for line in text.splitlines()
        if line and not line.startswith('#')
    ]
