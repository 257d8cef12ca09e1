"""Rules of docs/design.md that a reader can't see by running the code."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / 'inline_mm'
SOURCES = sorted(
    path for path in PACKAGE.rglob('*.py') if '.mim' not in path.parts
)
HOSTS = {'mmdet', 'mmseg', 'mmpretrain', 'timm', 'einops', 'pkg_resources'}
LAYERS = ('ops', 'layers', 'models')


def imported_modules(path):
    """Absolute names of what a file imports at its top level or inside."""
    package = path.relative_to(PACKAGE.parent).parent.parts
    for node in ast.walk(ast.parse(path.read_text(encoding='utf-8'))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level:
            base = package[: len(package) - node.level + 1]
            yield '.'.join([*base, node.module or ''])
        elif isinstance(node, ast.ImportFrom):
            yield node.module


@pytest.mark.parametrize('path', SOURCES, ids=lambda path: path.name)
def test_package_imports_no_host(path):
    roots = {name.split('.')[0] for name in imported_modules(path)}
    assert not roots & HOSTS


@pytest.mark.parametrize('layer', LAYERS)
def test_lower_layers_import_nothing_above_them(layer):
    above = LAYERS[LAYERS.index(layer) + 1 :]
    files = [path for path in SOURCES if path.parent.name == layer]
    assert files
    for path in files:
        for name in imported_modules(path):
            parts = name.split('.')
            assert parts[0] != 'inline_mm' or parts[1] not in (
                *above,
                'checkpoint',
                'engine',
                'data_check',
            ), f'{path.name} imports {name}'


@pytest.mark.parametrize('path', SOURCES, ids=lambda path: path.name)
def test_house_rules(path):
    text = path.read_text(encoding='utf-8')
    assert text.count('\n') <= 320, 'longer than a file should be'
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            assert node.args.kwarg is None, f'{node.name} takes **kwargs'
            lines = node.end_lineno - node.lineno + 1
            assert lines <= 75, f'{node.name} is {lines} lines long'
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id not in ('eval', 'exec', 'print')
    assert '.cuda(' not in text
