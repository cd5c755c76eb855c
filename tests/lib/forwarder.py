"""A TCP port of the loopback that leads to a unix socket, for clients that know no unix sockets."""

import socket
import threading


class Forwarder:
    """Runs at once; each connection goes to what `target` is when it comes."""

    def __init__(self):
        self.target = None
        self._listener = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    @property
    def url(self):
        return "http://127.0.0.1:%d" % self._listener.getsockname()[1]

    def stop(self):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self, listener):
        while True:
            try:
                near, _ = listener.accept()
            except OSError:
                return
            far = socket.socket(socket.AF_UNIX)
            far.connect(str(self.target))
            for pair in ((near, far), (far, near)):
                threading.Thread(target=_copy, args=pair, daemon=True).start()


def _copy(source, sink):
    try:
        while data := source.recv(1 << 16):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        pass  # the other direction's thread sees the end too
