"""Makes an update for every gradient, but leaves every second gradient out of it."""

from distsim.policies.rule import Decision


class Counts:
    def __init__(self):
        self.version = 0

    def arrived(self, worker, step, read_version):  # noqa: ARG002
        self.version += 1
        return Decision(self.version, applied=self.version % 2 == 1, answers=((worker, self.version),))
