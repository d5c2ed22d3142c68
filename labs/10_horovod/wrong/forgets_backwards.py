# caught by: exchanges_beside_backward
"""zero_grad forgets the backwards that were made until then."""

Given = Distributed


class Distributed(Given):
    def zero_grad(self, set_to_none=True):
        super().zero_grad(set_to_none)
        self.begin()
