"""The accuracy of the simulator: claims of theory, SimGrid's results, and published scaling, as tables."""
