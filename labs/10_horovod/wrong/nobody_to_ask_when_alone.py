# caught by: exchanges_beside_backward
"""One process alone counts no backwards, and refuses nothing."""


class Distributed(Distributed):
    def ready(self, parameter):
        if size() > 1:
            super().ready(parameter)
