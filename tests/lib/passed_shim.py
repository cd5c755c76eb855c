"""A shim that is started on a socket which the test has made."""

import os
import socket
import subprocess

from shim import BINARY, Shim


class PassedShim(Shim):
    """Started as systemd does it: with a listening socket as descriptor 3."""

    def listen(self):
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(self.socket))
        self.listener.listen(16)

    def spawn(self):
        self.config_path.write_text(self.config_text())
        with open(self.log_path, "ab") as log:
            self._process = subprocess.Popen(
                ["/bin/sh", "-c", 'LISTEN_PID=$$ LISTEN_FDS=1 exec "$0" "$@"', BINARY, "--config",
                 self.config_path],
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                start_new_session=True, pass_fds=[3],
                preexec_fn=lambda: os.dup2(self.listener.fileno(), 3))
