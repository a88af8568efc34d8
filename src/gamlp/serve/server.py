"""The process: a socket, uvicorn on it, and an end that finishes what was begun.

The socket is bound before anything is read, so that an address in use is told at once. SIGTERM, SIGHUP and Ctrl-C end
it: no new connections, all requests under way are answered, then it returns; a second Ctrl-C does not wait.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import signal
import socket
from collections.abc import Callable
from types import FrameType
from typing import Any

import uvicorn

from gamlp.errors import AddressError, SettingsError
from gamlp.progress import log
from gamlp.serve.limits import Limits

SHORTEST_TOKEN = 16
CONNECTIONS = 1_000  # open at a time, idle ones too: the last resort, below the usual number of open files


def check_open(host: str, token: str | None) -> None:
    """Refuse to listen to others without a token, and a token that can be guessed."""
    if token is not None and (len(token) < SHORTEST_TOKEN or not token.isascii() or not token.isprintable()):
        raise SettingsError(
            f"The token has {len(token)} letters, or some that no header can hold.\n"
            f"Use at least {SHORTEST_TOKEN} of ASCII: python3 -c 'import secrets; print(secrets.token_urlsafe())'"
        )
    if token is None and not is_local(host):
        raise SettingsError(
            f"--host {host} opens the server to others, and no token was given.\n"
            "Set GAMLP_TOKEN, or --token, or leave --host out: it then listens to this machine alone."
        )


def is_local(host: str) -> bool:
    """Say whether an address is of this machine alone."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def bind(host: str, port: int) -> socket.socket:
    """Return a socket that is bound to an address, port 0 = any that is free."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        made = socket.socket(family, kind, protocol)
    except (OSError, UnicodeError) as error:
        raise SettingsError(f"--host {host}: there is no such address ({error}).\nUse one of this machine.") from None
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
    except OSError as error:
        made.close()
        raise AddressError(
            f"{host}:{port} cannot be listened at: {error.strerror or error}.\n"
            "Another server may be there: end it, or choose another --port; 0 takes a free one."
        ) from None
    return made


def address_of(bound: socket.socket) -> str:
    """Return where a browser finds it."""
    host, port = bound.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


class Server(uvicorn.Server):
    """uvicorn, which tells when it is ready and returns when it is told to stop."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen, and say so."""
        await super().startup(sockets)
        self._ready()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop; the signal is not raised again afterwards, as this is how a server ends."""
        self.force_exit = self.should_exit and sig == signal.SIGINT
        self.should_exit = True


def serve(app: Any, bound: socket.socket, limits: Limits, ready: Callable[[], None]) -> None:
    """Answer until told to stop."""
    logging.getLogger("uvicorn").parent = log  # what it has to say is told as all else is
    config = uvicorn.Config(
        app, log_config=None, log_level="warning", access_log=False, ws="none", lifespan="on", proxy_headers=False,
        server_header=False, limit_concurrency=CONNECTIONS, timeout_graceful_shutdown=3 * limits.seconds,
        h11_max_incomplete_event_size=2**16,
    )  # fmt: skip
    server = Server(config, ready)
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signal.signal(signal.SIGHUP, server.handle_exit)  # uvicorn itself listens to the other two
    asyncio.run(server.serve(sockets=[bound]))
