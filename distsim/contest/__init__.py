"""The contest: policies, rules and schedules of a class, raced to a target loss on seeds that nobody has seen."""
