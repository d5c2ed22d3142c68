"""The power of a lab's checks: wrong solutions are made from right ones, and a fitting check must catch each.

source          a right solution of the lab, and the lines of it that students write
mutators        general changes, such as an index that is off by one
trade_mutators  changes of the trade, such as a wait that is dropped
appended_code   what such a change needs besides, at the end of the mutant
syntax          questions about trees of Python, and the making of new ones
mutant          one wrong solution with its stable name, and all mutants of a lab
evidence        what checks see of a solution: functions called, results, messages, virtual times
equivalent      mutants that are named right, with the reason
score           tries mutants, several at once
"""
