"""Reads one of PostgreSQL's regression files as psql would: statements, the data behind COPY, and psql's commands.

What is taken: `\\set`, `\\getenv`, `\\gset`, `\\g`, `\\;`, variables (`:name`, `:'name'`, `:"name"`), `\\if` and its kind, `\\c`.
Other commands of psql are left out: they ask the catalogue in psql's own words, or change only what is shown.
"""

import re

# What keeps a semicolon from ending a statement: texts, names, dollar quotes, comments.
TOKEN = re.compile(
    r"""(?P<comment>--[^\n]*)
      | (?P<open>/\*)
      | (?P<escaped>\b[eE]'(?:[^'\\]|''|\\.)*')
      | (?P<text>'(?:[^']|'')*')
      | (?P<name>"(?:[^"]|"")*")
      | (?P<dollar>(?<![\w$])\$(?P<tag>(?:[A-Za-z_]\w*)?)\$.*?\$(?P=tag)\$)
      | (?P<variable>(?<!:):(?:[A-Za-z_]\w*|'[A-Za-z_]\w*'|"[A-Za-z_]\w*"))
      | (?P<word>[A-Za-z_]\w*)
      | (?P<command>\\[^\n]*)
      | (?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)
FROM_STDIN = re.compile(r"^\s*copy\b.*\bfrom\s+stdin\b", re.IGNORECASE | re.DOTALL)


class Statement:
    """A statement, with the lines behind it when it is a COPY FROM STDIN."""

    def __init__(self, sql, line):
        self.sql, self.line, self.data, self.into = sql, line, None, None


class Script:
    """The statements of a file, in their order. `variables` are psql's."""

    def __init__(self, text, variables):
        self.text, self.variables = text, variables
        self.at, self.line = 0, 1
        self.conditions = []  # of nested \if: [is this branch read, was one read]

    def __iter__(self):
        parts, depth, begun = [], 0, 1
        while self.at < len(self.text):
            found = TOKEN.match(self.text, self.at)
            token, kind = found.group(), found.lastgroup
            kind = "dollar" if kind == "tag" else kind
            if kind == "open":
                token = self.comment()
            if not "".join(parts).strip():
                begun, depth = self.line, 0
            self.at, self.line = self.at + len(token), self.line + token.count("\n")
            if kind in ("comment", "open"):
                parts.append(" ")
            elif kind == "variable":
                parts.append(self.variable(token))
            elif kind == "command" and token.startswith("\\;"):
                self.at -= len(token) - 2
                parts.append(";")
            elif kind == "command":
                yield from self.command(token, parts, begun)
            elif token == ";" and depth == 0:
                yield from self.statement(parts, begun)
            else:
                depth += {"(": 1, ")": -1}.get(token, 0)
                parts.append(token)
        yield from self.statement(parts, begun)

    def comment(self):
        """A comment from here on; such comments nest."""
        depth, at = 0, self.at
        for found in re.finditer(r"/\*|\*/", self.text[self.at :]):
            depth += 1 if found.group() == "/*" else -1
            if depth == 0:
                return self.text[at : at + found.end()]
        return self.text[at:]

    def statement(self, parts, line, into=None):
        sql = "".join(parts).strip()
        parts.clear()
        if not sql or not all(read for read, _ in self.conditions):
            return
        statement = Statement(sql, line)
        statement.into = into
        if FROM_STDIN.match(sql):
            statement.data = self.copied()
        yield statement

    def copied(self):
        """The lines behind a COPY, up to `\\.`; they begin on the next line."""
        start = self.text.find("\n", self.at) + 1
        end = re.compile(r"^\\\.[ \t]*$", re.MULTILINE).search(self.text, start)
        stop, after = (end.start(), end.end()) if end else (len(self.text), len(self.text))
        self.line += self.text[self.at : after].count("\n")
        self.at = after
        return self.text[start:stop]

    def variable(self, token):
        name = token[1:].strip("'\"")
        if name not in self.variables:
            return token
        value = self.variables[name]
        if token[1] == "'":
            return "'" + value.replace("'", "''") + "'"
        return '"' + value.replace('"', '""') + '"' if token[1] == '"' else value

    def command(self, token, parts, line):
        words = token.split(None, 1)
        name, rest = words[0], words[1].strip() if len(words) > 1 else ""
        if name == "\\gset":
            yield from self.statement(parts, line, into=rest)
        elif name in ("\\g", "\\gx"):
            yield from self.statement(parts, line)
        elif name in ("\\gdesc", "\\gexec", "\\crosstabview"):
            parts.clear()
        elif name in ("\\if", "\\elif", "\\else", "\\endif"):
            self.condition(name, self.expand(rest))
        elif name in ("\\set", "\\getenv"):
            name, _, value = rest.partition(" ")
            if words[0] == "\\set":
                self.variables[name] = self.expand(value)

    def expand(self, text):
        """The words of a `\\set`, joined, as psql does."""
        words = re.findall(r":'?\w+'?|'(?:[^']|'')*'|\S+", text)
        joined = (self.variable(w) if w.startswith(":") else w[1:-1].replace("''", "'") if w[0] == "'" else w for w in words)
        return "".join(joined)

    def condition(self, name, value):
        true = value.lower() in ("t", "true", "on", "1", "yes")
        if name == "\\if":
            self.conditions.append([true, true])
        elif name == "\\endif":
            self.conditions.pop()
        else:
            _, done = self.conditions.pop()
            read = not done and (true or name == "\\else")
            self.conditions.append([read, done or read])
