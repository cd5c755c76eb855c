"""A shim that is started on a socket which the test has made."""

import socket
import subprocess

from shim import BINARY, Shim
from supervisor import listening


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
                listening([BINARY, "--config", self.config_path], [self.listener.fileno()]),
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                start_new_session=True, pass_fds=[self.listener.fileno()])
