"""ZeroMQ, and whether its encryption works: a message there and back, and none for a stranger."""

from __future__ import annotations

import time

import zmq

from evenflow.engine.runtime.doctor.finding import Finding

NAME = "ZeroMQ"
ADVICE = "Install a pyzmq that has CURVE, as the wheels on PyPI do: pip install --force-reinstall pyzmq"
LIMIT_MS = 5000
"""For each direction. On loopback it takes a few milliseconds, unless it does not work at all."""
REFUSED = zmq.Event.HANDSHAKE_FAILED_NO_DETAIL | zmq.Event.HANDSHAKE_FAILED_PROTOCOL | zmq.Event.HANDSHAKE_FAILED_AUTH
Socket = zmq.Socket[bytes]
Context = zmq.Context[Socket]


def check() -> Finding:
    """Its version, and CURVE between two sockets on loopback with keys made for it."""
    versions = f"ZeroMQ {zmq.zmq_version()}, pyzmq {zmq.__version__}"
    if not zmq.has("curve"):
        return Finding(NAME, "problem", f"{versions}, without CURVE", ADVICE)
    with zmq.Context() as context:
        # What a stranger does not get rid of would otherwise keep the context from ending.
        context.setsockopt(zmq.LINGER, 0)
        with context.socket(zmq.ROUTER) as server:
            keys = zmq.curve_keypair()
            server.curve_server = True
            server.curve_publickey, server.curve_secretkey = keys
            port = server.bind_to_random_port("tcp://127.0.0.1")
            began_s = time.perf_counter()
            with _client(context, port, keys[0]) as client:
                wrong = _round_trip(server, client)
            took_ms = (time.perf_counter() - began_s) * 1e3
            wrong = wrong or _stranger(context, server, port)
    if wrong is not None:
        return Finding(NAME, "problem", f"{versions}: {wrong}", f"See that nothing filters loopback. {ADVICE}")
    facts = f"an encrypted message there and back in {took_ms:.1f} ms, none with a wrong key"
    return Finding(NAME, "ok", f"{versions}, CURVE: {facts}")


def _client(context: Context, port: int, server_key: bytes) -> Socket:
    client = context.socket(zmq.DEALER)
    client.curve_serverkey = server_key
    client.curve_publickey, client.curve_secretkey = zmq.curve_keypair()
    client.connect(f"tcp://127.0.0.1:{port}")
    client.send(b"there")
    return client


def _round_trip(server: Socket, client: Socket) -> str | None:
    """What went wrong with a message there and back, if anything."""
    if not server.poll(LIMIT_MS):
        return f"no encrypted message arrived within {LIMIT_MS / 1e3:g} s"
    who, message = server.recv_multipart()
    server.send_multipart([who, message + b" and back"])
    if not client.poll(LIMIT_MS):
        return f"no encrypted answer arrived within {LIMIT_MS / 1e3:g} s"
    return None if client.recv() == b"there and back" else "the answer was another one than was sent"


def _stranger(context: Context, server: Socket, port: int) -> str | None:
    """What is wrong if a client gets through that takes the server for another."""
    poller = zmq.Poller()
    with server.get_monitor_socket(REFUSED) as refused, _client(context, port, zmq.curve_keypair()[0]):
        poller.register(server, zmq.POLLIN)
        poller.register(refused, zmq.POLLIN)
        heard = dict(poller.poll(LIMIT_MS))
    return "a client with a wrong key got through" if server in heard else None
