"""An agent, scripted: it tells the daemon of the machine's shutdown, without logind.

    agent = ScriptedAgent(socket); agent.start()
    agent.tell(known=True, under_way=True, limit_ms=30_000)      # until it is taken
    agent.wishes                                                 # what the daemon wants, the last one last
"""

import threading

import grpc

from protos import AGENT_FEED, agent
from waiting import GENEROUS_S


class ScriptedAgent:
    def __init__(self, socket):
        self.wishes = []
        self._channel = grpc.insecure_channel(f"unix:{socket}")
        self._watch = None
        self._reader = None

    def start(self):
        grpc.channel_ready_future(self._channel).result(timeout=GENEROUS_S)
        watch = self._channel.unary_stream(AGENT_FEED + "Watch", agent.WatchRequest.SerializeToString,
                                           agent.WatchResponse.FromString)
        self._watch = watch(agent.WatchRequest(agent_version="scripted"))
        self._take(next(self._watch))
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def stop(self):
        if self._watch:
            self._watch.cancel()
            self._reader.join(GENEROUS_S)
        self._channel.close()

    def tell(self, **shutdown):
        report = self._channel.unary_unary(AGENT_FEED + "Report", agent.ReportRequest.SerializeToString,
                                           agent.ReportResponse.FromString)
        report(agent.ReportRequest(whole=True, state=agent.State(node_name="node-1"),
                                   shutdown=agent.Shutdown(**shutdown)), timeout=GENEROUS_S)

    def tell_bytes(self, report):
        """One as it is sent, whether it can be read or not."""
        self._channel.unary_unary(AGENT_FEED + "Report", bytes, agent.ReportResponse.FromString)(report, timeout=GENEROUS_S)

    def _take(self, message):
        if message.HasField("shutdown"):
            self.wishes.append(message.shutdown)

    def _read(self):
        try:
            for message in self._watch:
                self._take(message)
        except grpc.RpcError:
            pass  # it was cancelled
