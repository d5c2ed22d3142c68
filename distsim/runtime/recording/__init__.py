"""The records of ranks during a run, and the trace that is made of them.

A rank writes rows into its `recorder`, which a `journal` keeps in case the rank dies, and its present activity into
its `rank_status`. `clock` and `clock_offset` are the time base. `merge` makes one trace of all records, and `audit`
compares that trace with each rank's own count (`tally`). `partial_trace` is the trace of a run that failed.
"""
