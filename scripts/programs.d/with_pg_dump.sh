# pg_dump of the database, restored into PostgreSQL and back into the server; and the dump of a PostgreSQL database, restored here.
. ./checks.sh
echo "version $(pg_dump --version | grep -oE '[0-9.]+' | head -1)"
dir=$(mktemp -d)
trap 'rm -rf "$dir"; psql -q -p "$JUDGE" -d postgres -c "DROP DATABASE IF EXISTS judge WITH (FORCE)"' EXIT
judge() { PGPORT=$JUDGE PGDATABASE=judge "$@"; }
empty_judge() { psql -q -p "$JUDGE" -d postgres -c 'DROP DATABASE IF EXISTS judge WITH (FORCE)' -c 'CREATE DATABASE judge'; }
# The rows, and what the catalogue says of the objects.
content() {
  for table in author book node; do
    echo "$table" && sql -c "COPY (SELECT * FROM $table ORDER BY id) TO STDOUT" || return 1
  done
  sql -c "SELECT * FROM dear ORDER BY 1, 2" -c "SELECT last_value, is_called FROM counter" \
    -c "SELECT conname, contype, pg_get_constraintdef(oid) FROM pg_constraint WHERE connamespace = 'public'::regnamespace ORDER BY 1" \
    -c "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY 1" \
    -c "SELECT relname, attname, format_type(atttypid, atttypmod), attnotnull, attidentity, col_description(attrelid, attnum)
        FROM pg_attribute a JOIN pg_class c ON c.oid = attrelid WHERE relkind IN ('r', 'v') AND attnum > 0 AND NOT attisdropped
        AND relnamespace = 'public'::regnamespace ORDER BY 1, attnum" \
    -c "SELECT obj_description('book'::regclass)"
}
drop() { sql -c 'SET client_min_messages = error' -c 'DROP VIEW IF EXISTS dear' -c 'DROP TABLE IF EXISTS node, book, author' -c 'DROP SEQUENCE IF EXISTS counter, author_id_seq, book_id_seq'; }
into() { # A NAME: restores the dump of that name into PostgreSQL, and compares
  empty_judge && judge sql -o /dev/null -f "$dir/$1" && judge content >"$dir/theirs" && differs
}
back() { drop && sql -o /dev/null -f "$dir/$1" && content >"$dir/theirs" && differs; }
differs() { diff "$dir/before" "$dir/theirs" >"$dir/diff" || { echo "differs: $(grep '^[<>]' "$dir/diff" | head -2 | tr '\n' ' ')"; return 1; }; }
dump() { local name=$1; shift; pg_dump "$@" >"$dir/$name"; }

check world sql -o /dev/null -f world.sql
check reads_the_catalogue content
content >"$dir/before" 2>/dev/null
check dumps_the_schema dump schema.sql --schema-only
check dumps_all dump all.sql
check restores_into_postgres into all.sql
check restores_into_itself back all.sql
check goes_on sql -o /dev/null -c "INSERT INTO author (name) VALUES ('next')" -c "INSERT INTO book (author_id, title) VALUES (1, 'next')" -c "DELETE FROM author WHERE name = 'next'" -c "DELETE FROM book WHERE title = 'next'"
drop; sql -o /dev/null -f world.sql 2>/dev/null
check dumps_inserts dump inserts.sql --inserts
check restores_inserts back inserts.sql
check dumps_column_inserts dump columns.sql --column-inserts --no-owner --no-privileges
check restores_column_inserts back columns.sql
check dumps_custom pg_dump -Fc -f "$dir/custom"
custom_into() { empty_judge && judge pg_restore -d judge "$dir/custom" && judge content >"$dir/theirs" && differs; }
custom_back() { drop && pg_restore -d "$PGDATABASE" "$dir/custom" && content >"$dir/theirs" && differs; }
check restores_custom_into_postgres custom_into
check restores_custom custom_back
clean_back() { pg_dump --clean --if-exists >"$dir/clean.sql" && sql -o /dev/null -f "$dir/clean.sql" && content >"$dir/theirs" && differs; }
check restores_with_clean clean_back
check dumps_one_table dump one.sql -t book
check dumps_in_parallel pg_dump -Fd -j 2 -f "$dir/folder"
of_postgres() {
  empty_judge && judge sql -o /dev/null -f world.sql && judge content >"$dir/before" && judge pg_dump "$@" >"$dir/postgres.sql" && back postgres.sql
}
check takes_a_dump_of_postgres of_postgres
check takes_inserts_of_postgres of_postgres --inserts
