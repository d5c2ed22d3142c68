"""Messages and all-reduces between ranks. `backend` alone calls torch.distributed, so another back end is one module.

All-reduces (`all_reduce`) are the back end's own, or follow a schedule over point-to-point messages (`schedule_run`).
Workers and servers exchange `messages` over a `channel` for each pair of ranks: a server receives through its `inbox`
and answers through its `senders`. Ranks on one host use a `shared_buffer` for numbers and `host_messages` for orders.
`ping_pong` compares the clocks of machines, and `gathering` brings the records of several machines together. `traffic`
counts the messages that a rank sends and receives.
"""
