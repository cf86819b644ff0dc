"""streamtight watch --serve: the live page, until somebody presses Ctrl-C. Nothing of Spark is loaded for it."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from types import FrameType

import typer

from streamtight.cli.answers import wrong_use
from streamtight.errors import ReportError, StreamtightError
from streamtight.source.journal import BOARD, board_of


def serve_page(board: str, *, more: Path | None, host: str, port: int, token: str) -> None:
    """Serve the page of this board, or of the one that the environment names, until it is stopped."""
    from streamtight.report.live_server import LivePage  # a server is of no use to the other commands

    try:
        if more is not None:
            raise ReportError(
                "watch --serve", needed="one folder, the board", came=f"{board} {more}", hint=f"watch --serve {board}"
            )
        folder = Path(board) if board else board_of(None) or Path(BOARD)
        if folder.exists() and not folder.is_dir():
            raise ReportError(
                f"watch --serve {folder}", needed="a folder, the board", came="a file", hint=f"watch --serve {BOARD}"
            )
        page = LivePage(folder.absolute(), host=host, port=port, token=token or None)
    except StreamtightError as error:
        raise wrong_use(error) from None
    with page:
        typer.echo(f"the live page of {folder}: {page.address}")
        if page.is_open:
            typer.echo("others on the network can read what is sent, since it is not encrypted", err=True)
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, _stop)  # as Ctrl-C does
        try:
            page.serve_forever()
        except KeyboardInterrupt:
            typer.echo("stopped", err=True)


def _stop(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
