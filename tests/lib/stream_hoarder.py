"""A process that opens streams of a DRA driver's health, and keeps them.

    hoarder = StreamHoarder(instance.endpoint)
    hoarder.open(8)      # returns once each has heard something: somebody must have said something
    hoarder.stop()
"""

import sys
import threading

import grpc
import nursery

_METHOD = "/v1alpha1.DRAResourceHealth/NodeWatchResources"


class StreamHoarder:
    def __init__(self, socket):
        self._process = nursery.start(__file__, str(socket))

    def open(self, count):
        for _ in range(count):
            self._process.stdin.write("\n")
            self._process.stdin.flush()
            assert self._process.stdout.readline() == "heard\n"

    def stop(self):
        self._process.kill()
        self._process.wait()
        self._process.stdin.close()
        self._process.stdout.close()


def _keep(stream):
    try:
        for _message in stream:
            pass
    except grpc.RpcError:
        pass  # it is ended


def main():
    with grpc.insecure_channel(f"unix:{sys.argv[1]}") as channel:
        watch = channel.unary_stream(_METHOD)
        for _line in sys.stdin:
            stream = watch(b"")
            next(stream)
            print("heard", flush=True)
            threading.Thread(target=_keep, args=[stream], daemon=True).start()
