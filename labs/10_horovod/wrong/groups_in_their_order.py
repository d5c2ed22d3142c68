# caught by: exchanges_beside_backward
"""The last layer of the first group is the first: right with one group."""


class Distributed(Distributed):
    def distribute(self, *given):
        super().distribute(*given)
        groups = [reversed(group["params"]) for group in self.param_groups]
        self.queue = [parameter for group in groups for parameter in group if parameter.requires_grad]
        self.begin()
