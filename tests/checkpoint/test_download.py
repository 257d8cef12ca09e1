"""Downloads from a server on this machine: cached, resumed, checked."""

import hashlib
import http.server
import io
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from small_checkpoints import build, tiny_state_dict

from inline_mm.checkpoint import CheckpointError, InLinePretrained
from inline_mm.checkpoint import download as module
from inline_mm.checkpoint.download import PUBLISHED, download, locate
from inline_mm.checkpoint.source import open_source


def checkpoint(family):
    buffer = io.BytesIO()
    torch.save({'model': tiny_state_dict(family)}, buffer)
    return buffer.getvalue()


class Server(http.server.ThreadingHTTPServer):
    """Serves one file; counts requests; can break off or ignore ranges."""

    def __init__(self):
        super().__init__(('127.0.0.1', 0), Handler)
        self.data = checkpoint('deit')
        self.requests = []
        self.tag = '"one"'
        self.ranges = True
        self.break_after = None
        self.length = True

    def url(self, path='/f/weights.pth?dl=1'):
        return f'http://127.0.0.1:{self.server_port}{path}'


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        server = self.server
        wanted = self.headers.get('Range')
        server.requests.append(wanted)
        if self.path.startswith('/missing'):
            self.send_error(404)
            return
        start = 0
        if server.ranges and wanted:
            start = int(wanted.removeprefix('bytes=').removesuffix('-'))
            if self.headers.get('If-Range', server.tag) != server.tag:
                start = 0
        if start >= len(server.data) > 0:
            self.send_error(416)
            return
        body = server.data[start:]
        self.send_response(206 if start else 200)
        if server.length:
            self.send_header('Content-Length', str(len(body)))
        if server.tag:
            self.send_header('ETag', server.tag)
        self.end_headers()
        if server.break_after is not None:
            body = body[: server.break_after]
        self.wfile.write(body)

    def log_message(self, format, *args):
        pass


@pytest.fixture
def server(monkeypatch, tmp_path):
    monkeypatch.setenv('TORCH_HOME', str(tmp_path / 'torch home'))
    monkeypatch.setenv('no_proxy', '*')
    server = Server()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def files(folder):
    return sorted(p.name for p in folder.iterdir() if p.suffix != '.lock')


def test_a_file_is_fetched_once_and_its_hash_recorded(server, tmp_path):
    path = download(server.url())
    assert path.parent == tmp_path / 'torch home' / 'hub' / 'checkpoints'
    assert path.read_bytes() == server.data
    digest = hashlib.sha256(server.data).hexdigest()
    record = path.with_name(f'{path.name}.sha256')
    assert record.read_text().split()[0] == digest
    assert files(path.parent) == [path.name, record.name]
    assert download(server.url()) == path
    assert len(server.requests) == 1
    assert open_source(server.url()).sha256 == digest


def test_a_part_of_unknown_length_is_not_kept(server, tmp_path):
    server.length, server.break_after = False, 2000
    with pytest.raises(CheckpointError, match='with a part of a checkpoint'):
        download(server.url())
    server.break_after = None
    assert download(server.url()).read_bytes() == server.data


@pytest.mark.parametrize('text', ['', 'no hash', '\xff'])
def test_other_files_of_the_records_name_are_ignored(text, tmp_path):
    path = tmp_path / 'weights.pth'
    torch.save({'model': tiny_state_dict('deit')}, path)
    path.with_name('weights.pth.sha256').write_text(text, 'latin-1')
    assert open_source(path).tensors


def test_links_may_hold_any_letter(server):
    assert download(server.url('/f/é ü.pth')).read_bytes() == server.data


def test_equal_names_of_different_links_are_kept_apart(server):
    assert download(server.url('/a/model.pth')) != download(
        server.url('/b/model.pth')
    )
    assert download(server.url('/c/w.safetensors')).suffix == '.safetensors'


def test_a_link_initialises_a_backbone(server):
    backbone = build('deit')
    InLinePretrained(server.url())(backbone)
    weights = tiny_state_dict('deit')
    assert torch.equal(backbone.cls_token, weights['cls_token'])


def test_published_names(server, monkeypatch):
    assert len(PUBLISHED) == 13
    monkeypatch.setitem(PUBLISHED, 'inline-deit-tiny', server.url('/f/?dl=1'))
    path = locate('inline-deit-tiny')
    assert path.name == 'inline-deit-tiny.pth'
    assert path.read_bytes() == server.data


def test_what_lies_here_under_a_published_name(server, monkeypatch, tmp_path):
    name = 'inline-deit-tiny'
    monkeypatch.setitem(PUBLISHED, name, server.url('/f/?dl=1'))
    monkeypatch.chdir(tmp_path)
    folder = module.Path(name)
    folder.mkdir()
    assert locate(name).name == 'inline-deit-tiny.pth'
    with pytest.raises(CheckpointError, match='is a folder'):
        locate(f'./{name}')
    folder.rmdir()
    folder.write_bytes(server.data)
    assert locate(name) == folder


def test_a_broken_download_goes_on_where_it_stopped(server):
    server.break_after = 20_000
    with pytest.raises(CheckpointError, match='run again to go on') as caught:
        download(server.url())
    assert '20000 of' in str(caught.value)
    server.break_after = None
    path = download(server.url())
    assert path.read_bytes() == server.data
    assert server.requests == [None, 'bytes=20000-']


@pytest.mark.parametrize('how', ['changed', 'no ranges', 'no tag'])
def test_a_broken_download_starts_over_where_it_must(how, server):
    if how == 'no tag':
        server.tag = None
    server.break_after = 20_000
    with pytest.raises(CheckpointError):
        download(server.url())
    server.break_after = None
    if how == 'changed':
        server.tag, server.data = '"two"', checkpoint('pvt')
    server.ranges = how != 'no ranges'
    assert download(server.url()).read_bytes() == server.data


def test_a_download_that_was_complete_but_not_renamed(server):
    server.break_after = 20_000
    with pytest.raises(CheckpointError):
        download(server.url())
    server.break_after = None
    part = next(module.Path(torch.hub.get_dir()).rglob('*.part'))
    part.write_bytes(server.data)
    path = download(server.url())
    assert path.read_bytes() == server.data
    assert server.requests[1:] == [f'bytes={len(server.data)}-', None]


def test_many_processes_fetch_it_once(server):
    with ThreadPoolExecutor(4) as pool:
        paths = set(pool.map(download, [server.url()] * 4))
    assert len(paths) == 1
    assert len(server.requests) == 1


def test_a_file_that_changed_since_is_refused(server):
    path = download(server.url())
    path.write_bytes(server.data + b'x')
    with pytest.raises(CheckpointError, match='has changed since'):
        open_source(server.url())


@pytest.mark.parametrize('data', [b'<!DOCTYPE html><html>Log in', b''])
def test_web_pages_and_nothing_leave_no_file(data, server):
    server.data = data
    with pytest.raises(CheckpointError, match='a web page, with nothing'):
        download(server.url())
    assert files(module.Path(torch.hub.get_dir()) / 'checkpoints') == []


def test_errors_of_the_server(server):
    with pytest.raises(CheckpointError, match='answers 404') as caught:
        download(server.url('/missing.pth'))
    assert 'pass its path' in str(caught.value)


def test_no_network(server, monkeypatch):
    def refuse(*args, **options):
        raise module.urllib.error.URLError('Name or service not known')

    monkeypatch.setattr(module.urllib.request, 'urlopen', refuse)
    with pytest.raises(CheckpointError, match='no connection to') as caught:
        InLinePretrained('inline-swin-tiny')(build('swin'))
    message = str(caught.value)
    assert 'cloud.tsinghua.edu.cn' in message
    assert 'inline-swin-tiny.pth' in message and '\n' not in message


def test_a_full_disk(server, monkeypatch):
    def fail(*args):
        raise OSError(28, 'No space left on device')

    monkeypatch.setattr(module, '_copy', fail)
    with pytest.raises(CheckpointError, match=r'cannot write .*No space left'):
        download(server.url())
