"""Every two gradients make an update; a gradient that is too stale is dropped."""

from distsim.policies.rule import Decision

MOST_STALE = 6


class FirstTwo:
    def __init__(self):
        self.version, self.waiting = 0, []

    def arrived(self, worker, step, read_version):  # noqa: ARG002
        if self.version - read_version > MOST_STALE:
            return Decision(applied=False, answers=((worker, self.version),))
        self.waiting.append(worker)
        if len(self.waiting) < 2:
            return Decision()
        self.version += 1
        answers = tuple((one, self.version) for one in self.waiting)
        self.waiting = []
        return Decision(self.version, answers=answers)
