"""When the transfers of collectives start and end, by exact recurrences over arrays, call by call.

max_plus_rounds   schedules in which ranks wait only for other ranks, such as the ring and rings of rings
tree              the binary tree, whose children share links
call_site         which of the two is exact for a collective on a cluster
"""
