# What the parts in bash share: `check NAME COMMAND...` prints `ok NAME`, or `no NAME: why` with the command's last error.
check() {
  local name=$1 said
  shift
  if said=$("$@" 2>&1); then echo "ok $name"; else echo "no $name: $(grep . <<<"$said" | grep -E 'ERROR|error|FATAL|differs' | head -1 | cut -c1-250)"; fi
}
sql() { psql -X -q -At -v ON_ERROR_STOP=1 "$@"; }
is() { # WANTED COMMAND...
  local found wanted=$1
  shift
  found=$("$@") || return 1
  [[ $found == "$wanted" ]] || { echo "differs: ${found//$'\n'/ | }, wanted ${wanted//$'\n'/ | }"; return 1; }
}
