"""A connection that answers for all statements of a request, and takes part in COPY. It stands on the differential
tester's client."""

import wire


class Answer:
    """What a request was answered with: for each statement its column names, its rows and its tag; or an error."""

    def __init__(self):
        self.results = []  # [(names or None, rows, tag)]
        self.error = None  # (SQLSTATE, message)
        self.lost = None  # why there is no answer
        self.status = b"I"  # of the transaction: I, T, E


class Client(wire.Connection):
    def ask(self, sql, data=None):
        answer = Answer()
        try:
            self.send([wire.simple(sql)])
            self.gather(answer, data)
        except wire.Lost as e:
            answer.lost = e.reason
            self.close()
        return answer

    def gather(self, answer, data):
        names, rows = None, []
        while True:
            kind, body = self.message()
            if kind == b"T":
                names, rows = [column[0] for column in wire.columns(body)], []
            elif kind == b"D":
                rows.append(wire.row(body))
            elif kind == b"d":
                rows.append((body,))
            elif kind == b"G":
                lines = (data or "").encode()
                self.send([wire.message(b"d", lines), wire.message(b"c", b"")] if lines else [wire.message(b"c", b"")])
            elif kind == b"C":
                answer.results.append((names, rows, body[:-1].decode()))
                names, rows = None, []
            elif kind == b"E" and answer.error is None:
                answer.error = wire.error(body)
            elif kind == b"Z":
                answer.status = body
                return
