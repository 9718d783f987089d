"""A client of PostgreSQL's protocol that does only what the tester needs: many requests in flight, replies as the
server's own bytes.

Source: PostgreSQL 15's documentation, chapter 55 (message flow and formats). Servers must trust the client: there is
no password here.
"""

import socket
import struct


class Lost(Exception):
    """The server closed the connection, or kept silent for too long."""

    def __init__(self, reason):
        super().__init__(reason)
        self.reason = reason


class Reply:
    """What one request was answered with."""

    __slots__ = ("columns", "rows", "tag", "error")

    def __init__(self):
        self.columns = None  # [(name, type's oid, type's modifier)], None where no rows were described
        self.rows = []  # each a tuple of bytes or None
        self.tag = None
        self.error = None  # (SQLSTATE, message)


class Connection:
    def __init__(self, port, user, database, timeout=30):
        self.address, self.user, self.database, self.timeout = ("127.0.0.1", port), user, database, timeout
        self.open()

    def open(self):
        self.socket = socket.create_connection(self.address, self.timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer, self.at = b"", 0  # what has come, and how much of it was read
        body = struct.pack("!i", 196608)
        for word in ("user", self.user, "database", self.database, "DateStyle", "ISO, MDY", "TimeZone", "UTC", ""):
            body += word.encode() + b"\0"
        self.socket.sendall(struct.pack("!i", len(body) + 4) + body)
        reply = self.receive()
        if reply.error:
            raise Lost(f"not let in: {reply.error}")

    def close(self):
        self.socket.close()

    def send(self, requests):
        """Sends requests at once; `receive` then answers for each. At most some 64 KB, or both sides may wait for
        each other."""
        try:
            self.socket.sendall(b"".join(requests))
        except OSError as e:
            raise Lost(f"connection lost ({e})") from None

    def receive(self):
        """The reply to the oldest request: all messages up to ReadyForQuery."""
        reply, rows = Reply(), []
        while True:
            kind, body = self.message()
            if kind == b"D":
                rows.append(row(body))
            elif kind == b"T":
                reply.columns, rows = columns(body), []
            elif kind == b"C":
                reply.tag = body[:-1].decode()
            elif kind == b"E" and reply.error is None:
                reply.error = error(body)
            elif kind == b"Z":
                reply.rows = rows
                return reply

    def message(self):
        while len(self.buffer) < self.at + 5:
            self.more()
        length = struct.unpack_from("!i", self.buffer, self.at + 1)[0]
        while len(self.buffer) <= self.at + length:
            self.more()
        start, self.at = self.at, self.at + length + 1
        return self.buffer[start : start + 1], self.buffer[start + 5 : self.at]

    def more(self):
        try:
            data = self.socket.recv(1 << 16)
        except socket.timeout:
            raise Lost(f"no answer within {self.timeout} s") from None
        except OSError as e:
            raise Lost(f"connection lost ({e})") from None
        if not data:
            raise Lost("connection closed by the server")
        self.buffer, self.at = self.buffer[self.at :] + data, 0


def row(body):
    count, at, values = struct.unpack_from("!h", body)[0], 2, []
    for _ in range(count):
        length = struct.unpack_from("!i", body, at)[0]
        at += 4
        if length < 0:
            values.append(None)
        else:
            values.append(body[at : at + length])
            at += length
    return tuple(values)


def columns(body):
    count, at, found = struct.unpack_from("!h", body)[0], 2, []
    for _ in range(count):
        end = body.index(b"\0", at)
        _, _, oid, _, modifier, _ = struct.unpack_from("!ihihih", body, end + 1)
        found.append((body[at:end].decode(), oid, modifier))
        at = end + 19
    return found


def error(body):
    fields = {part[:1]: part[1:].decode("utf-8", "replace") for part in body.split(b"\0") if part}
    return fields.get(b"C", "?????"), fields.get(b"M", "")


def message(kind, body):
    return kind + struct.pack("!i", len(body) + 4) + body


def simple(sql):
    return message(b"Q", sql.encode() + b"\0")


def extended(sql, oids, values, binary):
    """Parse, Bind, Describe, Execute, Sync; parameters as texts, results as texts or in binary."""
    parse = b"\0" + sql.encode() + b"\0" + struct.pack(f"!h{len(oids)}i", len(oids), *oids)
    bind = b"\0\0" + struct.pack("!hh", 0, len(values))
    for value in values:
        data = None if value is None else value.encode()
        bind += struct.pack("!i", -1) if data is None else struct.pack("!i", len(data)) + data
    bind += struct.pack("!hh", 1, 1 if binary else 0)
    return (
        message(b"P", parse)
        + message(b"B", bind)
        + message(b"D", b"P\0")
        + message(b"E", b"\0" + struct.pack("!i", 0))
        + message(b"S", b"")
    )
