# caught by: steps_as_one_process
"""Parameters without dimensions are trained by each rank alone."""


class Distributed(Distributed):
    def distribute(self, *given):
        super().distribute(*given)
        self.queue = [parameter for parameter in self.queue if parameter.dim()]
        self.begin()

    def ready(self, parameter):
        if parameter.dim():
            super().ready(parameter)
