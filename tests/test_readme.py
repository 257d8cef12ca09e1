"""What the README says, tried: commands in short form, snippets, links."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from tiny import build_model

from inline_mm.engine.launch import find_config

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


@pytest.mark.parametrize('target', ['env', 'demo', 'test'])
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


@pytest.mark.parametrize('tool', TOOLS)
def test_tools_say_how_they_are_used(tool):
    shell = tool.endswith('.sh')
    program = ['bash', tool] if shell else [sys.executable, tool, '--help']
    out = subprocess.run(program, cwd=ROOT, capture_output=True, text=True)
    # A shell launcher without arguments says what it takes and fails.
    assert out.returncode == (2 if shell else 0)
    assert 'usage' in (out.stdout + out.stderr).lower()


def test_options_and_configs_in_commands_exist():
    options = dict.fromkeys(TOOLS, '')
    for tool in TOOLS:
        options[tool] = (ROOT / tool).read_text(encoding='utf-8')
    launch = (ROOT / 'inline_mm/engine/launch.py').read_text(encoding='utf-8')
    configs = 0
    for words in COMMANDS:
        tool = next((word for word in words if word in options), None)
        for word in words:
            if tool and word.startswith('--'):
                source = options[tool] + launch
                if tool.endswith('.sh'):  # handed on to the launcher
                    source += options['tools/train.py']
                assert f"'{word}'" in source, word
            if re.fullmatch(r'[a-z0-9-]+_[\w.-]*(coco|ade20k-\d+x\d+)', word):
                assert Path(find_config(word)).is_file()
                configs += 1
    assert configs >= 5


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


@pytest.mark.parametrize(
    'page', PAGES, ids=lambda page: str(page.relative_to(ROOT))
)
def test_links_lead_somewhere(page):
    text = page.read_text(encoding='utf-8')
    for link in re.findall(r'\]\((?!https?://|#)([^)#]+)', text):
        assert (page.parent / link).exists(), link
