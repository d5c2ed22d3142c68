"""Real runs over torch.distributed. This process needs no torch: only the ranks that it launches import it.

measure     the door: scenarios in, measured traces out
launch      starts the ranks through torchrun, watches them, always ends them; with
            agent (torchrun itself), processes (ending them), output (what they print), diagnosis (what went wrong)
seat        what each rank has: a lifeline, a status slot, a stack dump, a record of its failure
rank        the entry point of each rank: rendezvous, start of the clock, then its story:
peers       compute -> all_reduce
worker      compute -> push -> wait -> pull
server      receive -> decide -> apply -> answer; with inbox (receiving) and messages (what travels)
recorder    what each rank saw and when; merge makes the trace of it
"""
