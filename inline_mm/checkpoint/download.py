"""Paths, URLs and published names to a file on this machine."""

import difflib
import hashlib
import os
import re
import string
import urllib.error
import urllib.request
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from urllib.parse import quote, urlsplit

import torch
from filelock import FileLock
from mmengine.logging import print_log
from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from .errors import CheckpointError
from .reading import (
    SUFFIXES,
    check_file,
    hash_file,
    is_safetensors,
    refuse_other_kinds,
)

_HOST = 'https://cloud.tsinghua.edu.cn/f/{}/?dl=1'

# Links of the official README; sizes and hashes aren't published.
PUBLISHED = {
    name: _HOST.format(share)
    for name, share in {
        'inline-deit-tiny': '1d6b8191ad6d4114b291',
        'inline-deit-small': '2f3898b07e9247f3beb3',
        'inline-deit-base': '10bdd726d4b0435eb34e',
        'inline-pvt-tiny': '90ac52b1555b401eb5e6',
        'inline-pvt-small': '1ab953b2479d433080a3',
        'inline-pvt-medium': 'a72aec31e6084bc0a280',
        'inline-pvt-large': 'efd91318ba964f01b288',
        'inline-swin-tiny': '32810869fcc34410966b',
        'inline-swin-small': 'e9657fd247c04c7cb1a1',
        'inline-swin-base': 'bf23564bb64c420aafe1',
        'inline-cswin-tiny': '49fa2ecc543647c4b970',
        'inline-cswin-small': '59f4e65f776f4052b93c',
        'inline-cswin-base': '91e17121df284ae38521',
    }.items()
}

CHUNK = 1 << 20
TIMEOUT = 30  # seconds without an answer


def locate(checkpoint: str | Path) -> Path:
    """A local file for a path, a URL or a published name.

    Args:
        checkpoint (str | Path): path (`~` is the home folder), URL, or a
            name such as 'inline-swin-tiny'. A file of the name comes first,
            a folder doesn't.

    Returns:
        Path: where the file lies; downloads are kept in torch's hub folder.

    Raises:
        CheckpointError: if it can't be had.
    """
    text = os.fspath(checkpoint)
    path = Path(text).expanduser()
    if re.match(r'https?://', text):
        return download(text)
    if '://' in text:
        raise CheckpointError(
            f'{text}: only http and https links and paths are read'
        )
    # A folder of that name, of work_dirs for one, is no checkpoint.
    if text in PUBLISHED and not path.is_file():
        return download(PUBLISHED[text], name=text)
    if not path.exists() and path.name == text and not path.suffix:
        near = difflib.get_close_matches(text, PUBLISHED, n=3)
        if near:
            raise CheckpointError(
                f'there is neither a file nor a published checkpoint {text}; '
                f'published ones of similar name: {", ".join(near)}'
            )
    check_file(path)
    return path


def download(url: str, name: str | None = None) -> Path:
    """Fetch a URL once; later calls return the file on disk.

    Safe to be called by many processes at once. A download that broke off
    goes on where it stopped if the server lets it.

    Args:
        url (str): http or https link.
        name (str | None): name of the file without suffix. Defaults to None,
            from the link.

    Returns:
        Path: the file. Its SHA-256 at the first download lies beside it, for
        `check_record`.

    Raises:
        CheckpointError: if it can't be had.
    """
    folder = Path(torch.hub.get_dir()) / 'checkpoints'
    path = folder / _cache_name(url, name)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(f'{path}.lock'):
            if not path.exists():
                print_log(f'downloading {url} to {path}', logger='current')
                _fetch(url, path)
    except (OSError, HTTPException) as error:
        raise CheckpointError(_explain(error, url, path)) from None
    return path


def _cache_name(url: str, name: str | None) -> str:
    """File name of a link; a part of its hash keeps equal names apart."""
    link = Path(urlsplit(url).path)
    suffix = link.suffix if link.suffix in SUFFIXES else '.pth'
    if name is None:
        stem = re.sub(r'[^\w.-]', '_', link.stem)
        name = f'{stem}.{hashlib.sha256(url.encode()).hexdigest()[:8]}'
    return name + suffix


def _fetch(url: str, path: Path) -> None:
    """Download to a temporary name, check, record the hash, rename."""
    part = path.with_name(path.name + '.part')
    tag = path.with_name(path.name + '.part.tag')
    link = quote(url, safe=string.punctuation)
    request = urllib.request.Request(link, headers={'User-Agent': 'inline_mm'})
    if part.exists() and tag.exists():
        request.add_header('Range', f'bytes={part.stat().st_size}-')
        # The server starts over where the file has changed meanwhile.
        request.add_header('If-Range', tag.read_text())
    with _open(request) as response:
        resumed = response.status == 206
        tag.unlink(missing_ok=True)
        validator = response.headers.get('ETag', '')
        if not validator or validator.startswith('W/'):
            validator = response.headers.get('Last-Modified', '')
        if validator:
            tag.write_text(validator)
        with part.open('ab' if resumed else 'wb') as file:
            _copy(response, file, path.name)
    try:
        head = check_file(part)
        # A server that names no length can break off unseen.
        if not is_safetensors(head):
            refuse_other_kinds(part, head)
    except CheckpointError:
        part.unlink()
        tag.unlink(missing_ok=True)
        raise CheckpointError(
            f'{url} answers with a web page, with nothing or with a part of a '
            f'checkpoint; download it in a browser and pass its path'
        ) from None
    digest = hash_file(part)
    _hash_path(path).write_text(f'{digest}  {path.name}\n')
    tag.unlink(missing_ok=True)
    part.replace(path)
    print_log(f'sha256 of {path}: {digest}', logger='current')


def _open(request: urllib.request.Request) -> HTTPResponse:
    try:
        return urllib.request.urlopen(request, timeout=TIMEOUT)
    except urllib.error.HTTPError as error:
        # Nothing lies behind what is already here: begin again.
        if error.code != 416 or not request.has_header('Range'):
            raise
    request.remove_header('Range')
    return urllib.request.urlopen(request, timeout=TIMEOUT)


def _copy(response: HTTPResponse, file, title: str) -> None:
    """Copy a response to a file under a progress bar."""
    start = file.tell()
    length = response.headers.get('Content-Length')
    total = None if length is None else start + int(length)
    columns = (
        TextColumn('{task.description}'),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task(title, total=total, completed=start)
        while chunk := response.read(CHUNK):
            file.write(chunk)
            progress.advance(task, len(chunk))
    if total is not None and file.tell() < total:
        raise ConnectionError(f'it ended after {file.tell()} of {total} bytes')


def _hash_path(path: Path) -> Path:
    return path.with_name(path.name + '.sha256')


def check_record(path: Path, digest: str) -> None:
    """Compare a file's SHA-256 with the one recorded at its download.

    Raises:
        CheckpointError: if they differ. Files that weren't downloaded pass.
    """
    record = _hash_path(path)
    text = record.read_bytes() if record.is_file() else b''
    found = re.match(rb'[0-9a-f]{64}\b', text)
    if found is None:  # none, or not one of ours
        return
    expected = found.group().decode()
    if digest != expected:
        raise CheckpointError(
            f'{path} has changed since it was downloaded (sha256 '
            f'{digest[:8]}..., was {expected[:8]}...); delete it to download '
            'it again'
        )


def _explain(error: Exception, url: str, path: Path) -> str:
    if isinstance(error, urllib.error.HTTPError):
        reason = f'the server answers {error.code} {error.reason}'
    elif isinstance(error, urllib.error.URLError):
        reason = f'there is no connection to {urlsplit(url).hostname}'
        reason += f' ({error.reason})'
    elif isinstance(error, ConnectionError | TimeoutError | HTTPException):
        reason = f'the connection broke off ({error}); run again to go on'
    else:
        return f'cannot write {path}: {error}'
    return (
        f'cannot download {url}: {reason}. Without a network, fetch it '
        f'elsewhere and pass its path, or store it as {path}'
    )
