# caught by: new_order_each_epoch
"""As if set_epoch had never been called."""


def forgets(self, epoch):
    pass


OwnSamples.set_epoch = forgets
