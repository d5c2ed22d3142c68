"""Starting, watching and ending a run's processes.

`launcher` starts torchrun, watches its ranks, and always ends them. `torchrun_agent` is the process in which torchrun
runs. A `fork_server` forks this process and the ranks, `fork_client` asks it, and `forked_program` is one fork. Only
these import torch. `owned_process` starts a process.
Three modules end processes: `lifeline` (the launching process is gone), `process_tree` (leftover processes) and
`termination` (SIGTERM). `rank_context` prepares a rank before anything else, `rank_output` reads the ranks' output, and
`diagnosis` explains a failure in one message. `node` is one machine of a run on several.
"""
