# caught by: chunks_are_even_views, the_ring_sums, the_fewest_bytes, the_time_of_a_ring
"""The sum is right, but with 7 numbers for 4 ranks one chunk has 4 of them and sets the pace."""


def chunks(tensor, count):
    length = tensor.numel() // count
    flat = tensor.view(-1)
    return [
        *(flat[number * length : (number + 1) * length] for number in range(count - 1)),
        flat[(count - 1) * length :],
    ]
