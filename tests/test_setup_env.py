"""tools/setup_env.py and tools/build_mmcv.py, without installing anything."""

import importlib
import itertools
import os
import signal
import subprocess
import sys
import types
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parent.parent / 'tools'


@pytest.fixture
def setup_env(monkeypatch):
    return load(monkeypatch, 'setup_env')


@pytest.fixture
def build_mmcv(monkeypatch):
    return load(monkeypatch, 'build_mmcv')


@pytest.fixture
def common(monkeypatch):
    return load(monkeypatch, '_setup_common')


def load(monkeypatch, name):
    monkeypatch.syspath_prepend(TOOLS)
    return importlib.import_module(name)


@pytest.fixture
def venv(tmp_path):
    (tmp_path / 'lib' / 'python3.11' / 'site-packages').mkdir(parents=True)
    (tmp_path / '.setup').mkdir()
    return tmp_path


def fake_environment(setup_env, venv, monkeypatch, actions, inputs=('a',)):
    """An environment whose steps are the given actions, by name."""
    environment = setup_env.Environment(venv, '')
    steps = [
        setup_env.Step(name, name, list(inputs), [], action)
        for name, action in actions.items()
    ]
    monkeypatch.setattr(environment, 'steps', lambda: steps)
    monkeypatch.setattr(setup_env, 'check_disk', lambda *_: None)
    return environment


def run_tool(name, *args, **env):
    return subprocess.run(
        [sys.executable, TOOLS / f'{name}.py', *args],
        capture_output=True,
        text=True,
        env={**os.environ, **env},
    )


def test_second_run_does_nothing(setup_env, venv, monkeypatch, capsys):
    calls = []
    actions = {name: lambda n=name: calls.append(n) for name in 'xyz'}
    for _ in range(2):
        fake_environment(setup_env, venv, monkeypatch, actions).complete()
    assert calls == ['x', 'y', 'z']
    assert capsys.readouterr().out.endswith(f'environment ready: {venv}\n')


def test_interrupted_run_goes_on_where_it_stopped(
    setup_env, venv, monkeypatch
):
    calls = []

    def interrupt():
        calls.append('interrupted')
        raise KeyboardInterrupt

    actions = {'x': lambda: calls.append('x'), 'y': interrupt}
    with pytest.raises(KeyboardInterrupt):
        fake_environment(setup_env, venv, monkeypatch, actions).complete()
    actions['y'] = lambda: calls.append('y')
    fake_environment(setup_env, venv, monkeypatch, actions).complete()
    assert calls == ['x', 'interrupted', 'y']


def test_changed_inputs_run_a_step_again(setup_env, venv, monkeypatch):
    calls = []
    actions = {'x': lambda: calls.append('x')}
    for inputs in (['a'], ['a', 'b']):
        fake_environment(
            setup_env, venv, monkeypatch, actions, inputs
        ).complete()
    assert calls == ['x', 'x']


def test_failed_step_says_how_to_go_on(setup_env, venv, monkeypatch):
    def fail():
        raise setup_env.SetupError('no space left')

    environment = fake_environment(setup_env, venv, monkeypatch, {'x': fail})
    with pytest.raises(setup_env.SetupError, match='no space left') as info:
        environment.complete()
    assert "Step 'x' failed" in str(info.value)
    assert 'run this again' in str(info.value)
    assert not environment.is_done(environment.steps()[0])


def test_uninstalled_package_is_noticed(setup_env, venv):
    environment = setup_env.Environment(venv, '')
    patterns = setup_env.dist_patterns(['onedl-mmcv'])
    step = setup_env.Step('x', '', [], patterns, None)
    (venv / '.setup' / 'x.done').write_text(step.key)
    assert not environment.is_done(step)
    (environment.site / 'onedl_mmcv-2.3.6.dist-info').mkdir()
    assert environment.is_done(step)


def test_half_installed_distributions_are_removed(setup_env, venv):
    environment = setup_env.Environment(venv, '')
    whole = environment.site / 'a-1.dist-info'
    half = environment.site / 'b-1.dist-info'
    moved = environment.site / '~c'
    for folder in (whole, half, moved):
        folder.mkdir()
        (folder / 'RECORD').touch()
    (whole / 'INSTALLER').touch()
    environment.remove_half_installed()
    assert whole.exists()
    assert not half.exists()
    assert not moved.exists()


def test_chosen_torch_is_remembered(setup_env, venv):
    assert setup_env.Environment(venv, '').torch == [
        'torch==2.10.0',
        'torchvision==0.25.0',
    ]
    other = ['torch==2.9.1', 'torchvision==0.24.1']
    assert setup_env.Environment(venv, ' '.join(other)).torch == other
    assert setup_env.Environment(venv, '').torch == other
    with pytest.raises(setup_env.SetupError, match='torch and torchvision'):
        setup_env.Environment(venv, 'torch==2.9.1')
    assert setup_env.Environment(venv, '').torch == other


def test_real_steps_depend_on_torch_where_they_must(setup_env, venv):
    def keys(torch):
        steps = setup_env.Environment(venv, torch).steps()
        return {step.name: step.key for step in steps}

    first = keys('torch==2.10.0 torchvision==0.25.0')
    second = keys('torch==2.9.1 torchvision==0.24.1')
    changed = {name for name in first if first[name] != second[name]}
    assert changed == {'torch', 'mmcv', 'packages', 'check'}


def test_upstream_gets_packages_of_its_own(setup_env, venv):
    steps = setup_env.Environment(venv, '', 'upstream').steps()
    provides = {step.name: step.provides for step in steps}
    assert provides['mmcv'][0] == 'mmcv-*.dist-info'
    assert 'mmsegmentation-*.dist-info' in provides['packages']
    assert not [p for ps in provides.values() for p in ps if 'onedl' in p]


@pytest.mark.parametrize('name', ['setup_env', 'build_mmcv'])
def test_help(name):
    result = run_tool(name, '--help')
    assert result.returncode == 0
    assert 'usage' in result.stdout


@pytest.mark.parametrize('version', [(3, 9, 18), (3, 13, 0)])
def test_wrong_python_is_refused(common, monkeypatch, version):
    monkeypatch.setattr(sys, 'version_info', version)
    with pytest.raises(common.SetupError, match=r'3\.10 to 3\.12 is needed'):
        common.check_python(12)


def test_too_little_disk_is_refused(common, monkeypatch, tmp_path):
    usage = types.SimpleNamespace(free=3e9)
    monkeypatch.setattr(common.shutil, 'disk_usage', lambda _: usage)
    with pytest.raises(common.SetupError, match=r'3\.0 GB are free.* 9 GB'):
        common.check_disk(tmp_path, 9)


def test_missing_compiler_is_named_before_anything_is_made(tmp_path):
    venv = tmp_path / 'venv'
    result = run_tool('setup_env', '--venv', venv, CXX='/no/such/c++')
    assert result.returncode == 1
    assert result.stderr.count('\n') == 1
    assert 'no C++ compiler' in result.stderr
    assert not venv.exists()


@pytest.mark.parametrize(
    ('stderr', 'message'),
    [
        ('error: C++17 is needed', 'does not compile a line of C++17'),
        ('Python.h: No such file', 'headers of Python'),
    ],
)
def test_unfit_compiler_is_named(
    common, monkeypatch, tmp_path, stderr, message
):
    compiler = tmp_path / 'c++'
    compiler.write_text(f'#!/bin/sh\necho "{stderr}" >&2\nexit 1\n')
    compiler.chmod(0o755)
    monkeypatch.setenv('CXX', str(compiler))
    with pytest.raises(common.SetupError) as info:
        common.check_compiler()
    assert message in str(info.value)


def test_no_network_is_named_early(tmp_path):
    """A real environment is made; the index behind it does not answer."""
    venv = tmp_path / 'venv'
    result = run_tool(
        'setup_env',
        '--venv',
        venv,
        PIP_CONFIG_FILE=os.devnull,
        PIP_INDEX_URL='http://127.0.0.1:9/simple',
        PIP_EXTRA_INDEX_URL='',
        PIP_FIND_LINKS='',
    )
    assert result.returncode == 1, result.stdout
    assert 'pip cannot reach a package index' in result.stderr
    assert 'Traceback' not in result.stderr
    assert [p.name for p in (venv / '.setup').glob('*.done')] == []


def test_run_shows_the_end_of_the_log(common, tmp_path):
    log = tmp_path / 'log'
    code = 'print(*range(100), sep="\\n"); raise SystemExit(3)'
    with pytest.raises(common.SetupError) as info:
        common.run([sys.executable, '-c', code], log)
    assert str(info.value).endswith('98\n99')
    assert '\n80\n' not in str(info.value)


def test_interruption_ends_what_was_started(common):
    """Also a process that loses the first request."""
    code = (
        'import signal, time\n'
        'lose = lambda *_: signal.signal(signal.SIGTERM, signal.SIG_DFL)\n'
        'signal.signal(signal.SIGTERM, lose)\n'
        'print(flush=True)\n'
        'time.sleep(100)\n'
    )
    command = [sys.executable, '-c', code]
    options = {'stdout': subprocess.PIPE}
    with (
        pytest.raises(KeyboardInterrupt),
        common.started(command, **options) as process,
    ):
        process.stdout.readline()
        raise KeyboardInterrupt
    assert process.returncode == -signal.SIGTERM


def test_every_source_is_in_one_unit(build_mmcv, tmp_path):
    root = tmp_path / 'mmcv' / 'ops' / 'csrc' / 'pytorch'
    (root / 'cpu').mkdir(parents=True)
    names = ['nms.cpp', 'roi_align.cpp', 'cpu/nms.cpp', 'pybind.cpp']
    names += itertools.chain(*build_mmcv.LAST_IN_UNIT)
    for name in names:
        (root / name).write_text(name)
    build_mmcv.group_sources(tmp_path)
    units = sorted(root.rglob('*.cpp'))
    assert len(units) == len(build_mmcv.LAST_IN_UNIT)
    included = [unit.read_text().split('"')[1::2] for unit in units]
    expected = [name.replace('.cpp', '.inc') for name in names]
    assert sorted(itertools.chain(*included)) == sorted(expected)
    for unit, names in zip(included, build_mmcv.LAST_IN_UNIT, strict=True):
        last = [name.replace('.cpp', '.inc') for name in names]
        assert unit[-len(last) :] == last
    assert all((root / name).exists() for name in expected)


@pytest.mark.parametrize(
    ('torch_cuda', 'gpu', 'nvcc', 'expected'),
    [
        (None, False, '13.0', (False, 'torch is a CPU build')),
        ('12.8', False, '12.8', (False, 'no GPU is visible')),
        ('12.8', True, None, (False, 'no nvcc')),
        ('12.8', True, '13.0', (False, 'the major versions must agree')),
        ('12.8', True, '12.4', (True, 'nvcc 12.4 fits torch (CUDA 12.8)')),
    ],
)
def test_cuda_operators_need_gpu_and_fitting_nvcc(
    build_mmcv, monkeypatch, tmp_path, torch_cuda, gpu, nvcc, expected
):
    torch = types.SimpleNamespace(
        version=types.SimpleNamespace(cuda=torch_cuda),
        cuda=types.SimpleNamespace(is_available=lambda: gpu),
    )
    monkeypatch.setitem(sys.modules, 'torch', torch)
    monkeypatch.delenv('FORCE_CUDA', raising=False)
    monkeypatch.setenv('CUDA_HOME', str(tmp_path))
    if nvcc:
        script = tmp_path / 'bin' / 'nvcc'
        script.parent.mkdir()
        script.write_text(f'#!/bin/sh\necho "release {nvcc}, V{nvcc}.1"\n')
        script.chmod(0o755)
    decision, reason = build_mmcv.plan_cuda()
    assert decision == expected[0]
    assert expected[1] in reason


def test_upstream_mmcv_is_not_built_over(build_mmcv, monkeypatch):
    names = [{'Name': 'torch'}, {'Name': 'mmcv'}]
    monkeypatch.setattr(
        build_mmcv.importlib.metadata,
        'distributions',
        lambda: [types.SimpleNamespace(metadata=name) for name in names],
    )
    with pytest.raises(build_mmcv.SetupError, match='pip uninstall mmcv'):
        build_mmcv.check_host(build_mmcv.HOSTS['onedl'])
    build_mmcv.check_host(build_mmcv.HOSTS['upstream'])
