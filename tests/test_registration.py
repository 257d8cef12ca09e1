"""Registration: any import order, any scope, any working directory."""

import json
import os
import subprocess
import sys
import textwrap

PACKAGES = ('mmdet', 'mmseg', 'mmpretrain', 'inline_mm')
BACKBONES = ('InLinePVT', 'InLineSwin', 'InLineCSwin', 'InLineDeiT')

# What the hosts share is imported once; each order then runs in a fork.
ORDERS = """
import importlib, itertools, json, os, sys, traceback, warnings
import torch, torchvision, mmengine.runner, mmcv.ops, matplotlib.pyplot
warnings.simplefilter('error', UserWarning)
failures, tried = [], 0
for order in itertools.permutations(json.loads(sys.argv[1])):
    child = os.fork()
    if child == 0:
        try:
            for name in order:
                importlib.import_module(name)
            # Once more for real, not from the cache.
            importlib.reload(sys.modules['inline_mm'])
            from mmengine.registry import MODELS
            for name in json.loads(sys.argv[2]):
                assert MODELS.get(name) is not None, name
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    tried += 1
    if os.waitpid(child, 0)[1] != 0:
        failures.append('-'.join(order))
print(tried)
sys.exit(', '.join(failures) or 0)
"""

SCOPES = """
import json, sys, torch
from mmengine.registry import DefaultScope, MODELS, init_default_scope
import inline_mm
import importlib
for scope, host in json.loads(sys.argv[1]):
    if scope:
        importlib.import_module(f'{host}.models')
        init_default_scope(scope)
        registry = importlib.import_module(f'{host}.registry').MODELS
    else:
        registry = MODELS
    for name in json.loads(sys.argv[2]):
        with torch.device('meta'):
            assert registry.build(dict(type=name)).__class__.__name__ == name
print('built')
"""


def run(script, *args, cwd, **options):
    return subprocess.run(
        [sys.executable, '-c', textwrap.dedent(script), *args],
        cwd=cwd,
        capture_output=True,
        text=True,
        **options,
    )


def test_import_orders(tmp_path):
    """Mostly third-party warnings would be errors here: ours are none."""
    out = run(
        ORDERS, json.dumps(PACKAGES), json.dumps(BACKBONES), cwd=tmp_path
    )
    assert out.returncode == 0, out.stderr[-3000:]
    assert out.stdout.split()[-1] == '24'


def test_scopes_from_a_folder_that_has_our_folders_names(tmp_path):
    """Packages called as ours and the hosts' folders change nothing."""
    for name in ('models', 'tools', 'projects', 'configs'):
        (tmp_path / name).mkdir()
        (tmp_path / name / '__init__.py').write_text('raise SystemExit(3)')
    scopes = [
        (None, None),
        ('mmdet', 'mmdet'),
        ('mmseg', 'mmseg'),
        ('mmpretrain', 'mmpretrain'),
    ]
    out = run(SCOPES, json.dumps(scopes), json.dumps(BACKBONES), cwd=tmp_path)
    assert out.returncode == 0, out.stderr[-3000:]
    assert out.stdout.strip().endswith('built')
    assert 'Failed to search registry' not in out.stderr + out.stdout


def test_import_needs_no_host(tmp_path):
    """The package alone imports nothing of the hosts, timm or transformers."""
    script = """
    import sys
    import inline_mm
    hosts = {'mmdet', 'mmseg', 'mmpretrain', 'timm', 'transformers'}
    loaded = hosts & {name.split('.')[0] for name in sys.modules}
    assert not loaded, loaded
    """
    environment = {**os.environ, 'PYTHONWARNINGS': 'error::UserWarning'}
    out = run(script, cwd=tmp_path, env=environment)
    assert out.returncode == 0, out.stderr[-3000:]
