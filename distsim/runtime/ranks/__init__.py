"""The work of a rank, from `entry_point` on.

`session` runs the job's scenarios one after the other, `collective` its schedules. A rank has one role in a scenario.
Without a server that decides (`peer_roles`), the role is in `peers`, `ddp` or `pipeline`. With servers
(`server_roles`), it is in `worker` and `server`, or for FlexRR in `flexrr_worker` and `work_assigner`. `computation`
and `delayed_layers` hold a worker's computation, and `failures` ends ranks on purpose and brings them back. The roles
use the words of the simulator's stories, so that the two can be read side by side.
"""
