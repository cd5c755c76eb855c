"""A relay of TCP connections, as a load balancer in front of API servers, whose server may be gone without a word: it goes on
taking what comes on the connections that were made before, and passes nothing on.

    relay = DeafRelay(server.port); relay.start()
    relay.turn_deaf(); relay.cut()
    relay.stop()
"""

import asyncio
import contextlib

import serving_thread
from waiting import GENEROUS_S


class DeafRelay:
    def __init__(self, to_port):
        self.port = 0
        self.connections = 0
        self._to_port = to_port
        self._deaf_before = 0  # connections
        self._loop = asyncio.new_event_loop()
        self._thread = None
        self._writers = set()

    def start(self):
        self._thread = serving_thread.start(self._run)

    def stop(self):
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(GENEROUS_S)

    def turn_deaf(self):
        self._deaf_before = self.connections

    def cut(self):
        """As one that ends what is idle: both ends hear it."""
        self._loop.call_soon_threadsafe(lambda: [writer.close() for writer in list(self._writers)])

    def _run(self, started):
        server = self._loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.port = server.sockets[0].getsockname()[1]
        started.set()
        self._loop.run_forever()
        tasks = asyncio.all_tasks(self._loop)
        for task in tasks:
            task.cancel()
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()

    async def _serve(self, reader, writer):
        number, self.connections = self.connections, self.connections + 1
        to_reader, to_writer = await asyncio.open_connection("127.0.0.1", self._to_port)
        self._writers |= {writer, to_writer}
        with contextlib.suppress(ConnectionError):
            await asyncio.gather(self._pass(number, reader, to_writer), self._pass(number, to_reader, writer))
        self._writers -= {writer, to_writer}

    async def _pass(self, number, reader, writer):
        while data := await reader.read(65536):
            if number >= self._deaf_before:
                writer.write(data)
                await writer.drain()
        writer.close()
