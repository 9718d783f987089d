"""Says how Terrace's answer to a statement of PostgreSQL's regression files stands to PostgreSQL's own.

Kinds: "same"; "apart" (the statement is about what Terrace does not have by choice, or about an object that such a
statement made, or whose rows or definition it changed on PostgreSQL alone, or asks for a plan); "refused" (Terrace says that it does not do it); "missing" (an object is missing
that an earlier statement should have made); "error" (Terrace fails in another way); "sqlstate" (both fail, each for
another reason); "accepted" (Terrace answers, PostgreSQL refuses); "rows", "order", "names", "tag" (both answer, not
alike); "lost" (no answer).

1. Rows are compared as texts. Without ORDER BY of the statement's own their order does not count: that of a window or
   of a query in parentheses is none.
2. Errors are compared by SQLSTATE, not by their words.
"""

import re
from collections import Counter

# What is refused by choice: triggers, procedural and other functions, rules, partitions, inheritance, materialized
# views, large objects, tablespaces, foreign data, operators and casts of users. Plans are each program's own.
APART = re.compile(
    r"\btrigger\b|\b(create|drop|alter)\s+(or\s+replace\s+)?(function|procedure|routine|rule|aggregate|operator"
    r"|cast|language|tablespace|publication|subscription|policy|statistics|access\s+method|event|server|foreign"
    r"|collation|conversion|text\s+search|extension|transform)\b|\b(temp|temporary|unlogged)?\s*materialized\s+view\b"
    r"|\bpartition\s+(of|by\s+(list|range|hash))\b|\b(attach|detach)\s+partition\b|\binherits?\b|\blo_\w+"
    r"|\blarge\s+object\b|\bpg_largeobject\w*"
    r"|^\s*explain\b|\blanguage\s+(sql|plpgsql|c|internal)\b|^\s*(call|do)\b|\bplpgsql\b|\bexecute\s+(function"
    r"|procedure)\b|\btablespace\b|\bplan\s*_?cache|\brow\s+level\s+security\b|\bpg_get_(rule|trigger|function)\w*"
    r"|\bof\s+\w+_type\b|\bnulls\s+not\s+distinct\s+\(",
    re.IGNORECASE,
)
MADE = re.compile(
    r"\b(?:create|add)\s+(?:or\s+replace\s+)?(?:temp\w*\s+|unlogged\s+|global\s+|local\s+|materialized\s+|foreign\s+"
    r"|constraint\s+|default\s+)*(?:table|view|schema|function|procedure|type|aggregate|operator|language|rule|trigger|cast"
    r"|collation)\s+(?:if\s+not\s+exists\s+)?([\w.\"]+)",
    re.IGNORECASE,
)
# The table of a statement that changes its rows or its definition.
CHANGED = re.compile(
    r"\s*(?:insert\s+into|update|delete\s+from|alter\s+table(?:\s+if\s+exists)?|merge\s+into|copy|truncate(?:\s+table)?"
    r"|create\s+(?:or\s+replace\s+)?(?:constraint\s+)?(?:rule\s[^;]*?\sto|trigger\s[^;]*?\son))\s+(?:only\s+)?([\w.\"]+)",
    re.IGNORECASE,
)
REFUSED = ("0A000", "54", "42704", "42883", "42601", "42846", "42804", "22023")
MISSING = ("42P01", "42703", "3F000", "26000", "34000")
WORD = re.compile(r"[A-Za-z_]\w*")


PARENTHESES = re.compile(r"'(?:[^']|'')*'|\([^()']*\)")


def outermost(sql):
    """What stands in no parentheses."""
    while (less := PARENTHESES.sub("", sql)) != sql:
        sql = less
    return sql


def last_part(name):
    return name.split(".")[-1].strip('"').lower()


class Judge:
    def __init__(self):
        self.tainted = set()  # names of what statements that are apart made or changed

    def kind(self, sql, ours, theirs):
        if self.apart(sql):
            changed = CHANGED.match(sql)
            if changed and ours.error and not theirs.error:
                self.tainted.add(last_part(changed.group(1)))
            return "apart"
        if ours.lost:
            return "lost"
        if theirs.error and ours.error:
            return "same" if theirs.error[0] == ours.error[0] else "sqlstate"
        if theirs.error:
            return "accepted"
        if ours.error:
            return self.failure(ours.error[0])
        return self.difference(sql, ours.results, theirs.results)

    def apart(self, sql):
        made = MADE.search(sql)
        names = {word.lower() for word in WORD.findall(sql)}
        if made:
            # Made anew, it is what this statement says.
            names.discard(last_part(made.group(1)))
        by_choice = bool(APART.search(sql)) or not self.tainted.isdisjoint(names)
        if by_choice and made and not re.match(r"\s*(explain|drop)\b", sql, re.IGNORECASE):
            self.tainted.add(last_part(made.group(1)))
        elif made:
            self.tainted.discard(last_part(made.group(1)))
        return by_choice

    def failure(self, state):
        if state.startswith(MISSING):
            return "missing"
        return "refused" if state.startswith(REFUSED) else "error"

    def difference(self, sql, ours, theirs):
        if [r[2] for r in ours] != [r[2] for r in theirs]:
            return "tag"
        for (our_names, our_rows, _), (their_names, their_rows, _) in zip(ours, theirs):
            if our_rows != their_rows:
                if Counter(our_rows) != Counter(their_rows):
                    return "rows"
                if re.search(r"\border\s+by\b", outermost(sql), re.IGNORECASE):
                    return "order"
            if our_names != their_names:
                return "names"
        return "same"
