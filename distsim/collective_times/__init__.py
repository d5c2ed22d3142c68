"""When the transfers of collectives start and end, by exact recurrences over arrays, call by call.

max_plus_rounds   schedules in which ranks wait only for other ranks
rings             those whose ranks stand in rings: the ring and rings of rings
round_sample      the start of chosen rounds of a ring, without the rounds between
tree              the binary tree, whose children share links
call_site         which of them is exact for a collective on a cluster
"""
