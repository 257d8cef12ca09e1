"""What the README says, tried: commands in short form, snippets, links."""

import functools
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from small_checkpoints import tiny_state_dict
from tiny import build_model

from inline_mm.checkpoint import convert_file
from inline_mm.engine.launch import shipped_configs

ROOT = Path(__file__).parents[1]
README = (ROOT / 'README.md').read_text(encoding='utf-8')
PAGES = [
    path
    for path in (*ROOT.glob('*.md'), *ROOT.glob('*/**/*.md'))
    if not {'.venv', '.mim', 'work_dirs'} & set(path.parts)
]


def blocks(language):
    return re.findall(rf'```{language}\n(.*?)```', README, re.S)


def commands():
    """Words of each command line of the bash blocks, without comments."""
    for block in blocks('bash'):
        for line in block.splitlines():
            words = shlex.split(line, comments=True)
            if words:
                yield words


def strip_environment(words):
    while '=' in words[0]:
        words = words[1:]
    return words


COMMANDS = [strip_environment(words) for words in commands()]
TOOLS = sorted(
    {
        word
        for words in COMMANDS
        for word in words[:2]
        if word.startswith('tools/')
    }
)
# A group stays on one worker, which asks each tool for help once.
GROUPED = [
    pytest.param(tool, marks=pytest.mark.xdist_group(tool)) for tool in TOOLS
]


@pytest.mark.parametrize(
    'target', ['env', 'demo', 'experiment', 'ablations', 'test']
)
def test_make_targets_exist_and_begin_with_the_environment(target):
    out = subprocess.run(
        ['make', '-n', target],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert 'tools/setup_env.py' in out.stdout
    assert f'`make {target}' in README or f'make {target} ' in README


def test_the_two_commands_open_the_first_block():
    assert [words[:2] for words in COMMANDS[:2]] == [
        ['make', 'demo'],
        ['make', 'test'],
    ]


@functools.cache
def usage(tool, *command):
    """Exit code of a tool, or of a command of it, and what it says."""
    shell = tool.endswith('.sh')
    program = ['bash', tool]
    if not shell:
        program = [sys.executable, tool, *command, '--help']
    out = subprocess.run(program, cwd=ROOT, capture_output=True, text=True)
    return out.returncode, out.stdout + out.stderr


@pytest.mark.parametrize('tool', GROUPED)
def test_tools_say_how_they_are_used(tool):
    code, text = usage(tool)
    # A shell launcher without arguments says what it takes and fails.
    assert code == (2 if tool.endswith('.sh') else 0)
    assert 'usage' in text.lower()


def options_of(tool, *command):
    """Those that `--help` lists at the beginning of a line."""
    _, text = usage(tool, *command)
    launcher = re.search(r'\[options of (\w+\.py)\]', text)
    if launcher:
        return options_of(f'tools/{launcher.group(1)}')
    lines = re.findall(r'^  (?:-\w, )?(--.*)', text, re.M)
    return {word for line in lines for word in re.findall('--[a-z-]+', line)}


@pytest.mark.parametrize('tool', GROUPED)
def test_options_in_commands_exist(tool):
    known = options_of(tool)
    for words in COMMANDS:
        if tool in words:
            used = {word for word in words if word.startswith('--')}
            if not used <= known:  # they may belong to one of its commands
                assert used <= options_of(tool, words[2])


def test_options_in_the_table_exist():
    rows = re.findall(r'^\| `(--[a-z-]+).*?` \| (\w+) \|', README, re.M)
    assert len(rows) >= 8
    for option, of in rows:
        for tool in ('train', 'test') if of == 'both' else (of,):
            assert option in options_of(f'tools/{tool}.py')


def test_configs_in_commands_exist():
    names = {
        word
        for words in COMMANDS
        for word in words
        if re.fullmatch(r'[a-z0-9-]+_[\w.-]*(coco|in1k|\d+x\d+)', word)
    }
    assert len(names) >= 3
    assert names <= set(shipped_configs())


# Stand-ins for the files that the commands name, or would download.
def write_official(path):
    torch.save({'model': tiny_state_dict('swin')}, path)


def write_detector(path):
    official = path.with_name('official.pth')
    write_official(official)
    convert_file(official, path)


STAND_INS = {
    'max_acc.pth': write_official,
    'inline-swin-tiny': write_official,
    'work_dirs/run/epoch_12.pth': write_detector,
}
CONVERT = [
    words for words in COMMANDS if 'tools/convert_checkpoint.py' in words
]


@pytest.mark.parametrize('words', CONVERT, ids=' '.join)
def test_convert_commands_run(words, tmp_path):
    """On a small file, from a folder where nothing else is."""
    tool, source, target, *options = words[1:]
    file = tmp_path / source
    file.parent.mkdir(parents=True, exist_ok=True)
    STAND_INS[source](file)
    out = subprocess.run(
        [sys.executable, ROOT / tool, f'./{source}', target, *options],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert out.returncode == 0, out.stderr
    written = tmp_path / target
    if target.endswith('/'):
        (written,) = written.iterdir()
    content = torch.load(written, weights_only=True)
    if '--to' in options:
        assert (
            content['model'].keys()
            == tiny_state_dict('swin', head=False).keys()
        )
    else:
        heads = {key.startswith('head.') for key in content['state_dict']}
        assert heads == (
            {False, True} if '--keep-head' in options else {False}
        )


def test_the_stock_tool_is_found():
    """The look-up as it stands there; its launcher only explains itself."""
    block = next(code for code in blocks('bash') if '.mim/tools' in code)
    look_up, launch = block.splitlines()
    command, config = launch.rsplit(' ', 1)
    assert (ROOT / config).is_file()
    script = f'python() {{ "$PYTHON" "$@"; }}\n{look_up}\n{command} --help'
    out = subprocess.run(
        ['bash', '-ec', script],
        cwd='/',
        env=os.environ | dict(PYTHON=sys.executable),
        capture_output=True,
        text=True,
    )
    assert out.returncode == 0, out.stderr
    assert 'usage: train.py' in out.stdout


def test_names_in_snippets_can_be_imported():
    snippets = ''.join(blocks('python'))
    imports = re.findall(r'^(?:from|import) .*', snippets, re.M)
    assert any('init_detector' in line for line in imports)
    exec('\n'.join(imports), {})
    for config in re.findall(r"'(configs/[^']*)'", snippets):
        assert (ROOT / config).is_file(), config


def test_the_config_snippet_builds(tmp_path):
    snippet = next(code for code in blocks('python') if '_base_' in code)
    path = tmp_path / 'mine.py'
    path.write_text(snippet)
    from mmengine.config import Config

    cfg = Config.fromfile(path)
    assert cfg.model.backbone.init_cfg.type == 'InLinePretrained'
    cfg.model.backbone.init_cfg = None
    model = build_model(cfg)
    assert type(model.backbone).__name__ == 'InLineSwin'
    assert model.neck.in_channels == model.backbone.num_features
    assert cfg.optim_wrapper.optimizer.type == 'AdamW'
    assert 'momentum' not in cfg.optim_wrapper.optimizer


@pytest.mark.parametrize(
    'page', PAGES, ids=lambda page: str(page.relative_to(ROOT))
)
def test_links_lead_somewhere(page):
    text = page.read_text(encoding='utf-8')
    for link in re.findall(r'\]\((?!https?://|#)([^)#]+)', text):
        assert (page.parent / link).exists(), link


@pytest.mark.parametrize('host', ['mmdet', 'mmseg', 'mmpretrain'])
def test_every_config_is_in_the_table_of_its_folder(host):
    folder = ROOT / 'configs' / host
    page = (folder / 'README.md').read_text(encoding='utf-8')
    configs = sorted(folder.glob('inline_*/*.py'))
    assert configs
    for path in configs:
        link = f'[{path.stem}]({path.relative_to(folder)})'
        row = next(line for line in page.splitlines() if link in line)
        # Marked where the comment of the config says so.
        ours = "# Recipe: ours, not the paper's" in path.read_text()
        assert '†' in row or not ours
