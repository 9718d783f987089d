# pgbench: its tables, its scripts in each mode, scripts of one's own.
. ./checks.sh
echo "version $(pgbench --version | grep -oE '[0-9.]+' | head -1)"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
balanced() {
  is t sql -c "SELECT (SELECT sum(abalance) FROM pgbench_accounts) = (SELECT sum(tbalance) FROM pgbench_tellers)
    AND (SELECT sum(bbalance) FROM pgbench_branches) = (SELECT sum(delta) FROM pgbench_history)"
}
run() { pgbench -n -c 4 -j 2 -t 25 "$@" && balanced; }
check initialises pgbench -i -q
check initialises_on_the_server pgbench -i -q -I dtGvp
check foreign_keys pgbench -i -q --foreign-keys
check unlogged pgbench -i -q --unlogged-tables
check partitions pgbench -i -q --partitions=3
check initialises_again pgbench -i -q
check simple run -M simple
check extended run -M extended
check prepared run -M prepared
check connects_each_time run -C
check select_only run -S -M prepared
check simple_update pgbench -n -N -c 4 -t 25
check with_retries pgbench -n -c 4 -t 25 --max-tries=3
cat >"$dir/own" <<'S'
\set id random_zipfian(1, 1000, 1.1)
\startpipeline
BEGIN;
SELECT abalance FROM pgbench_accounts WHERE aid = :id;
UPDATE pgbench_accounts SET abalance = abalance + 0 WHERE aid = :id;
END;
\endpipeline
\if :id > 500
SELECT 1 AS one \gset
\else
SELECT 1 AS one, 2 AS two \aset
\endif
S
check own_script pgbench -n -c 4 -t 25 -M extended -f "$dir/own"
