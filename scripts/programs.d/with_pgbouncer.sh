# PgBouncer between a client and the server, with each way of pooling.
. ./checks.sh
echo "version $(pgbouncer --version | grep -oE '[0-9.]+' | head -1)"
dir=$(mktemp -d)
chmod 755 "$dir"
server_port=$PGPORT bouncer=
trap '[[ -z $bouncer ]] || kill "$bouncer"; rm -rf "$dir"' EXIT
pooled() { # MODE
  [[ -z $bouncer ]] || { kill "$bouncer"; wait "$bouncer" || true; }
  cat >"$dir/ini" <<I
[databases]
$PGDATABASE = host=127.0.0.1 port=$server_port user=$PGUSER
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = $((JUDGE + 2))
unix_socket_dir =
auth_type = any
pool_mode = $1
default_pool_size = 8
ignore_startup_parameters = extra_float_digits
I
  chmod 644 "$dir/ini"
  # It does not run as root.
  local as=()
  [[ $EUID != 0 ]] || as=(setpriv --reuid=postgres --regid=postgres --init-groups)
  "${as[@]}" pgbouncer "$dir/ini" >"$dir/log" 2>&1 &
  bouncer=$!
  export PGPORT=$((JUDGE + 2))
  for _ in $(seq 50); do sql -c 'SELECT 1' >/dev/null 2>&1 && return; sleep 0.1; done
  cat "$dir/log" >&2
}
many() { # twelve clients at once, eight places
  local n waited=()
  for n in $(seq 12); do
    is "$n" sql -c "SELECT count(*) + $n FROM k" &
    waited+=($!)
  done
  for n in "${waited[@]}"; do wait "$n" || return 1; done
}
load() { pgbench -n -S -c 8 -t 20 "$@"; }
pgbench -i -q >/dev/null 2>&1
sql -c 'CREATE TABLE k (id int)'
for mode in session transaction statement; do
  pooled "$mode"
  check "${mode}_pooling" many
  check "${mode}_load" load
done
pooled session
check session_prepared load -M prepared
check session_state is Berlin sql -c "SET application_name = 'Berlin'" -c 'SHOW application_name'
check session_is_reset is psql sql -c 'SHOW application_name'
pooled transaction
check transaction_errors is '' bash -c '! psql -Xqc "BEGIN; SELECT 1/0" 2>/dev/null'
check transaction_after_errors many
