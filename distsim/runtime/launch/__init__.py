"""Starting, watching and ending a run's processes.

`launcher` starts torchrun, watches its ranks, and always ends them. `torchrun_agent` is the process in which torchrun
runs, `owned_process` starts a process with all that ends it: `lifeline` (the launching process is gone),
`process_tree` (what is left of a run) and `termination` (SIGTERM). `rank_context` is what a rank has before it imports
anything heavy, `rank_output` reads what ranks print, and `diagnosis` says in one message what went wrong. `node` is one
machine of a run on several. Nothing here imports torch, but for the agent.
"""
