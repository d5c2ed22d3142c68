# caught by: steps_as_one_process, one_exchange_for_each_update, the_training_script
"""Gradients are added up and not divided."""


class Distributed(Distributed):
    def synchronize(self):
        while len(self.sent) < len(self.queue):
            self.send()
        for work in self.sent:
            work.wait()
        self.begin()
