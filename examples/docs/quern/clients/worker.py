"""A consumer that works until it is told to stop."""

import signal
import time

from quern import Client, LeaseLost

# Attempts to reach a broker before the worker gives up, and the seconds between them.
CONNECT_ATTEMPTS = 12
CONNECT_PAUSE = 2.5


def connect(address, token):
    """Return a client; raise ConnectionError after CONNECT_ATTEMPTS."""
    for attempt in range(CONNECT_ATTEMPTS):
        try:
            return Client(address, token=token, member="worker-1")
        except ConnectionError:
            if attempt == CONNECT_ATTEMPTS - 1:
                raise
            time.sleep(CONNECT_PAUSE)


class Worker:
    """Handles the messages of a lane one by one."""

    def __init__(self, client, lane, group, handle):
        self.consumer = client.consumer(lane, group, prefetch=1)
        self.handle = handle
        self.stopping = False
        signal.signal(signal.SIGTERM, self.stop)

    def stop(self, *_):
        """Finish the message that is under way, then end."""
        self.stopping = True

    def run(self):
        while not self.stopping:
            message = self.consumer.receive(wait=10)
            if message is None:
                continue
            try:
                with message.keep_lease():
                    self.handle(message)
                message.confirm()
            except LeaseLost:
                continue  # somebody else has it by now: do not confirm
            except Exception:
                # Back later rather than at once: the cause may pass.
                message.give_back(after=90)
