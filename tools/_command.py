"""What every command shares: arguments, signals, and how it ends.

Standard library only. Help and refused arguments come before torch is
imported, which takes seconds: commands parse first and import then.
"""

import argparse
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager


class Terminated(KeyboardInterrupt):
    """SIGTERM, which ends a command as Ctrl-C does."""


class CfgOptions(argparse.Action):
    """``--cfg-options`` as a list of KEY=VALUE; mmengine reads them later."""

    def __call__(self, parser, namespace, values, option_string=None):
        for value in values:
            if '=' not in value:
                parser.error(f'{option_string} takes KEY=VALUE, got {value!r}')
        before = getattr(namespace, self.dest) or []
        setattr(namespace, self.dest, [*before, *values])


def add_cfg_options(parser: argparse.ArgumentParser) -> None:
    """Adds what overrides settings of a config.

    Args:
        parser (ArgumentParser): the parser to extend.
    """
    parser.add_argument(
        '--cfg-options',
        nargs='+',
        action=CfgOptions,
        metavar='KEY=VALUE',
        help='override settings of the config, e.g. model.backbone.with_cp='
        'True; lists as KEY="[a,b]", without blanks',
    )


def add_common_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments that both launchers take.

    Args:
        parser (ArgumentParser): the parser to extend.
    """
    parser.add_argument(
        '--work-dir',
        help='folder for logs and results; ./work_dirs/CONFIG by default',
    )
    add_cfg_options(parser)
    parser.add_argument(
        '--launcher',
        choices=('none', 'pytorch', 'slurm', 'mpi'),
        default='none',
        help='how several processes were started; the dist_*.sh and '
        'slurm_*.sh scripts set it',
    )
    parser.add_argument(
        '--local_rank',
        '--local-rank',
        type=int,
        default=0,
        help='set by torch.distributed.launch',
    )


@contextmanager
def command(name: str, stopped: str = 'stopped') -> Iterator[None]:
    """Ends a command in one sentence, after all that it printed.

    Exit codes: 1 for a mistake that the user can mend, 2 for arguments that
    argparse refuses, 128 plus the signal's number for Ctrl-C, SIGTERM and a
    reader of the output that has gone. Other exceptions are faults of ours
    and keep their traceback.

    Args:
        name (str): of the command, put before the sentence.
        stopped (str): the sentence after Ctrl-C and SIGTERM.
    """
    # The hosts print: in a file or a pipe that would else come after what
    # goes to stderr.
    sys.stdout.reconfigure(line_buffering=True)
    before = signal.signal(signal.SIGTERM, _terminate_of(os.getpid()))
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        # Else the interpreter complains when it flushes at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(128 + signal.SIGPIPE) from None
    except KeyboardInterrupt as error:
        terminated = isinstance(error, Terminated)
        signum = signal.SIGTERM if terminated else signal.SIGINT
        _end(name, stopped, 128 + signum)
    except FileNotFoundError as error:
        _end(
            name,
            f'{error}; relative paths in configs start from the current '
            f'folder, {os.getcwd()}',
        )
    except OSError as error:
        _end(name, error)
    except ImportError as error:
        if error.name == 'inline_mm':
            _end(name, 'inline_mm is not installed here; `make env` does it')
        if not str(error).startswith('inline_mm '):
            raise
        _end(name, error)
    except _sentences() as error:
        if hasattr(error, 'exit_code') and not _is_main_process():
            raise SystemExit(error.exit_code) from None
        _end(name, error, getattr(error, 'exit_code', 1))
    finally:
        signal.signal(signal.SIGTERM, before)


def _terminate_of(pid: int):
    """A handler of SIGTERM that leaves forked workers the default."""

    def terminate(signum, frame):
        if os.getpid() == pid:
            raise Terminated
        signal.signal(signum, signal.SIG_DFL)
        os.kill(os.getpid(), signum)

    return terminate


def _end(name: str, sentence, code: int = 1) -> None:
    sys.stdout.flush()
    sys.stderr.write(f'{name}: {sentence}\n')
    raise SystemExit(code) from None


def _sentences() -> tuple:
    """The exceptions whose text is a sentence for the user."""
    if sys.modules.get('inline_mm') is None:
        return ()
    from inline_mm.checkpoint import CheckpointError
    from inline_mm.data_check import DataError
    from inline_mm.errors import LaunchError, RunStoppedError

    return CheckpointError, DataError, LaunchError, RunStoppedError


def _is_main_process() -> bool:
    from mmengine.dist import is_main_process

    return is_main_process()
