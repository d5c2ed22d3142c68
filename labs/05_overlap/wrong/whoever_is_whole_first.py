# caught by: gradients_are_the_mean, layers_that_a_rank_does_not_use, communication_beside_backward, nothing_is_sent_inside_no_sync
"""Where a rank does not use a layer, its buckets leave in another order, and different buckets are added up."""


class Overlapped(Overlapped):
    def ready(self, number):
        self.missing[number] -= 1
        if self.communicates and self.missing[number] == 0:
            self.send(number)

    def finish(self):
        if self.communicates:
            for number in range(len(self.buckets)):
                if number not in self.sent:
                    self.send(number)
            super().finish()
