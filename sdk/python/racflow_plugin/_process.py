"""The process of a plugin: how it starts, what it says first, how it ends."""
from __future__ import annotations

import os
import sys

COOKIE, VALUE = "RACFLOW_PLUGIN", "b6c0ce8b-stage"


class _Given:
    """What racflow has said at the start."""

    started = False  # by racflow
    stdout = stdin = -1  # the real ones
    sockets = certificate = ""


given = _Given()


def prepare() -> None:
    """Makes a process that racflow has started ready. In every other one it only finds vendor/."""
    main = getattr(sys.modules.get("__main__"), "__file__", None)
    if main:
        vendor = os.path.join(os.path.dirname(os.path.realpath(main)), "vendor")
        if vendor not in sys.path and os.path.isdir(vendor):
            sys.path.insert(1, vendor)
    if os.environ.get(COOKIE) != VALUE:
        return
    _keep_others_out()
    given.started = True
    given.sockets, given.certificate = os.environ.get("PLUGIN_UNIX_SOCKET_DIR", ""), os.environ.get("PLUGIN_CLIENT_CERT", "")
    for name in [name for name in os.environ if name in (COOKIE, "RACFLOW_STAGE") or name.startswith("PLUGIN_")]:
        del os.environ[name]  # what the stage starts in turn is no plugin
    # Standard output belongs to the handshake, and standard input says when racflow ends: what a plugin or one
    # of its packages prints goes to the log, and what it starts reads nothing.
    given.stdout, given.stdin = os.dup(1), os.dup(0)
    os.dup2(2, 1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)


def _keep_others_out() -> None:
    """Keeps other processes of this user from reading this one's memory, where secrets will be."""
    if sys.platform != "linux" or os.environ.get("RACFLOW_DUMPABLE") == "1":
        return
    import ctypes
    if ctypes.CDLL(None, use_errno=True).prctl(4, 0, 0, 0, 0) != 0:  # PR_SET_DUMPABLE
        print("warning: keep other processes of this user out of this one:", os.strerror(ctypes.get_errno()), file=sys.stderr)


def serve(plugin) -> None:
    """Serves the stages of a plugin until racflow lets go of it."""
    if not given.started:
        sys.exit(f"{plugin.name} is a plugin for racflow, which starts it where a pipeline file uses one of its stages.")
    import faulthandler
    import threading

    from . import _log, _server, _tls
    _log.to_stderr()
    faulthandler.enable()  # what crashes in a library of C has last words, too
    threading.Thread(target=_end_with_racflow, name="life line", daemon=True).start()
    key, certificate, encoded = _tls.certificate()
    server = _server.Server(plugin)
    socket = os.path.join(given.sockets or _folder(), f"plugin{os.getpid()}")
    server.start("unix:" + socket, key, certificate, given.certificate.encode())
    os.write(given.stdout, f"1|2|unix|{socket}|grpc|{encoded}\n".encode())
    server.wait()
    _exit(0)


def _folder() -> str:
    import tempfile
    given.sockets = tempfile.mkdtemp(prefix="plugin")
    return given.sockets


def _end_with_racflow() -> None:
    """Waits for the end of standard input, which comes when racflow ends, however it does."""
    try:
        while os.read(given.stdin, 4096):
            pass
    except OSError:
        pass
    if given.sockets:
        for name in (f"plugin{os.getpid()}", ""):
            try:
                path = os.path.join(given.sockets, name)
                os.remove(path) if name else os.rmdir(path)
            except OSError:
                pass
    os._exit(0)


def _exit(status: int) -> None:
    """Ends the process, whatever threads still run."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            pass
    os._exit(status)
