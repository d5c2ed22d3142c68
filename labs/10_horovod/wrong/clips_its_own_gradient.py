# caught by: one_exchange_for_each_update, the_training_script
"""`synchronize` leaves everything to `step`: what is clipped is no mean."""

Own = Distributed


class Distributed(Own):
    def synchronize(self):
        pass

    def step(self, closure=None):
        loss = closure() if closure else None
        Own.synchronize(self)
        super(Own, self).step()
        return loss
