"""How far the simulator can be trusted: claims of theory, SimGrid's results, and published scaling, as tables."""
