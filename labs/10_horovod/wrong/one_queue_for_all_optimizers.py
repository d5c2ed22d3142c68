# caught by: one_exchange_for_each_update
"""What has been sent is kept for all optimizers together: two in one script take each other's."""

sent_by_all = []


class Distributed(Distributed):
    def begin(self):
        super().begin()
        sent_by_all.clear()
        self.sent = sent_by_all
