"""The entry point of each rank of a measured run; torchrun starts it as `python -m distsim.runtime.rank`."""

from __future__ import annotations

from distsim.runtime import seat


def main() -> None:
    """Takes the seat first, so that a rank that hangs or fails while importing torch can be told as well."""
    with seat.taken() as place:
        place.slot.doing("import torch")
        from distsim.runtime import session

        session.run(place)


if __name__ == "__main__":
    main()
