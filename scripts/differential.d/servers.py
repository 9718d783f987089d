"""Starts both servers in a directory of their own, on loopback, and stops them."""

import os
import subprocess
import tempfile
import time

import wire

POSTGRES = "/usr/lib/postgresql/15/bin"
# Order by bytes, letters of all languages: as Terrace has them.
LOCALE = ("--locale=C", "--lc-ctype=C.UTF-8", "--encoding=UTF8")
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def run(command, **options):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stdout}")


def wait(port, user, database, process=None, log=""):
    for _ in range(600):
        try:
            return wire.Connection(port, user, database).close()
        except (OSError, wire.Lost):
            if process is not None and process.poll() is not None:
                raise SystemExit(f"the server at port {port} did not start:\n{log and open(log).read()}") from None
            time.sleep(0.1)
    raise SystemExit(f"the server at port {port} did not answer within 60 s")


class Postgres:
    """A cluster without syncs. It refuses to run as root: then it runs as Debian's user postgres."""

    user, database = "postgres", "postgres"

    def __init__(self, port):
        self.port = port
        self.directory = tempfile.mkdtemp(prefix="differential-postgres-")
        self.data = os.path.join(self.directory, "data")
        self.prefix = []
        if os.geteuid() == 0:
            run(["chown", "postgres", self.directory])
            self.prefix = ["runuser", "-u", "postgres", "--"]
        self.tool("initdb", "-D", self.data, "-A", "trust", "-U", "postgres", *LOCALE, "-N")
        # No sockets in directories; names that the tester gives databases are its own.
        options = f"-p {port} -h 127.0.0.1 -k '' -c fsync=off -c max_connections=50 -c statement_timeout=60s -c jit=off"
        log = os.path.join(self.directory, "log")
        self.tool("pg_ctl", "-D", self.data, "-o", options, "-l", log, "-w", "start")
        wait(port, self.user, self.database)

    def tool(self, name, *arguments):
        # Its output goes to a file: a server that inherited a pipe would keep it open.
        output = os.path.join(self.directory, "output")
        with open(output, "w") as file:
            command = [*self.prefix, os.path.join(POSTGRES, name), *arguments]
            done = subprocess.run(command, stdout=file, stderr=subprocess.STDOUT, cwd="/")
        if done.returncode:
            log = os.path.join(self.directory, "log")
            more = open(log).read() if os.path.exists(log) else ""
            raise SystemExit(f"{name} failed:\n{open(output).read()}{more}")

    def stop(self):
        self.tool("pg_ctl", "-D", self.data, "-m", "immediate", "stop")
        run(["rm", "-rf", self.directory])


class Terrace:
    user, database = "terrace", "terrace"

    def __init__(self, port, binary=None):
        self.port = port
        self.directory = tempfile.mkdtemp(prefix="differential-terrace-")
        self.binary = binary or os.environ.get("TERRACE") or os.path.join(ROOT, "target/debug/terrace")
        self.data, self.log = os.path.join(self.directory, "db"), os.path.join(self.directory, "log")
        run([self.binary, "init", self.data])
        self.start()

    def start(self):
        with open(self.log, "a") as log:
            command = [self.binary, "serve", self.data, "--listen", f"127.0.0.1:{self.port}"]
            # In a session of its own: Ctrl-C and `timeout` reach all of the tester's, and it would stop before those
            # who ask it.
            self.process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        wait(self.port, self.user, self.database, self.process, self.log)

    def state(self):
        """Whether it runs, and the last of what it said."""
        ended = self.process.poll()
        said = open(self.log, errors="replace").read()[-3000:]
        return f"Terrace at port {self.port} {'runs' if ended is None else f'has ended ({ended})'}; its log:\n{said}"

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        run(["rm", "-rf", self.directory])
