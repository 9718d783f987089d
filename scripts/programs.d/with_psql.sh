# psql: each of its commands that describe, how it shows errors, its variables, \copy, \gexec and the like.
. ./checks.sh
echo "version $(psql --version | grep -oE '[0-9.]+' | head -1)"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
sql -o /dev/null -f world.sql
for command in d dS d+ dt dt+ di di+ dv dv+ ds ds+ dn dn+ du du+ dg df dfa dT dTS dT+ dC do dO dO+ da db db+ dp z ddp dc dd dD dE \
  des det deu dew dF dFd dFp dFt dl dL dm dP dPn drds dRp dRs dx dX dy dA dAc dAf dAo dAp dconfig dconfig+ l l+ encoding conninfo; do
  check "\\$command" sql -o /dev/null -c "\\$command"
done
check '\d_TABLE' sql -o /dev/null -c '\d book' -c '\d+ author' -c '\d counter' -c '\d dear' -c '\d by_price'
check '\d_PATTERN' sql -o /dev/null -c '\d public.b*' -c '\dt pg_catalog.*' -c '\df pg_*'
shown() { psql -X -q -c "$1"; }
described() {
  shown '\d book' | grep -qF '"book_author_id_fkey" FOREIGN KEY (author_id) REFERENCES author(id) ON DELETE CASCADE' || { echo 'differs: no foreign key'; return 1; }
  shown '\d author' | grep -qF 'TABLE "book" CONSTRAINT "book_author_id_fkey"' || { echo 'differs: not referenced'; return 1; }
  shown '\d book' | grep -qF 'generated always as identity' || { echo 'differs: no identity'; return 1; }
}
check '\d_keys' described
check '\sv' is "$(printf 'CREATE OR REPLACE VIEW public.v AS\n SELECT 1 AS one')" sh -c 'psql -Xqc "CREATE VIEW v AS SELECT 1 AS one" && psql -XAtqc "\\sv v"'
piped() { printf '%s\n' "$2" | is "$1" sql; }
check '\gset_variables' piped 3 'SELECT 1 AS a, 2 AS b \gset
SELECT :a + :b;'
check quoted_variables piped "it's \\|a\"b" "\\set v 'it''s \\\\'
SELECT :'v' || '|a\"b';"
check '\gdesc' piped 'id|integer
price|numeric(8,2)
name|character varying(50)' 'SELECT b.id::int, price, name FROM book b JOIN author a ON a.id = author_id \gdesc'
check '\gexec' piped 5 "SELECT 'CREATE TABLE made (id int)' UNION ALL SELECT 'INSERT INTO made VALUES (5)' ORDER BY 1 \\gexec
SELECT * FROM made;"
check '\crosstabview' piped 'a|1|2' "SELECT * FROM (VALUES ('a', 'x', 1), ('a', 'y', 2)) AS v (r, c, n) \\crosstabview"
check '\watch' piped 1 'SELECT 1 \g
'
check '\bind_and_\g' piped 6 'SELECT 6 \g (format=unaligned)'
check fetch_count piped 101 '\set FETCH_COUNT 7
\o /dev/null
SELECT * FROM book;
\o
SELECT count(*) FROM book;'
copied() { sql -c "\\copy book (author_id, title) TO '$dir/b'" -c 'CREATE TABLE b2 (a int, t text)' -c "\\copy b2 FROM '$dir/b'" && is 101 sql -c 'SELECT count(*) FROM b2'; }
check '\copy' copied
csv() { sql -c "\\copy b2 TO '$dir/c' csv header" -c 'TRUNCATE b2' -c "\\copy b2 FROM '$dir/c' csv header" && is 101 sql -c 'SELECT count(*) FROM b2'; }
check '\copy_csv' csv
check single_transaction is 0 sh -c 'psql -Xq1 -v ON_ERROR_STOP=1 -c "INSERT INTO b2 VALUES (1000)" -c "SELECT 1/0" 2>/dev/null; psql -XAtqc "SELECT count(*) FROM b2 WHERE a = 1000"'
check on_error_rollback piped 7 '\set ON_ERROR_ROLLBACK on
\set ON_ERROR_STOP off
BEGIN;
\o /dev/null
SELECT nothing;
\o
SELECT 7;
COMMIT;' 
error() { # WANTED STATEMENT
  local found
  found=$(psql -X -v VERBOSITY="${3:-default}" -c "$2" 2>&1) || true
  [[ $found == "$1" ]] || { echo "differs: $found"; return 1; }
}
check error_with_a_line error "$(printf 'ERROR:  column "x" does not exist\nLINE 1: SELECT x FROM book\n               ^')" 'SELECT x FROM book'
check error_with_a_hint error "$(printf 'ERROR:  column "titel" does not exist\nLINE 1: SELECT titel FROM book\n               ^\nHINT:  Perhaps you meant to reference the column "book.title".')" 'SELECT titel FROM book'
check error_with_details error "$(printf 'ERROR:  duplicate key value violates unique constraint "author_name_key"\nDETAIL:  Key (name)=(Bob) already exists.')" "INSERT INTO author (name) VALUES ('Bob')"
check error_of_a_foreign_key error "$(printf 'ERROR:  insert or update on table "book" violates foreign key constraint "book_author_id_fkey"\nDETAIL:  Key (author_id)=(77) is not present in table "author".')" "INSERT INTO book (author_id, title) VALUES (77, '')"
check timing sh -c 'printf "\\\\timing on\nSELECT 1;\n" | psql -Xq | grep -q "^Time"'
check connects_again sql -o /dev/null -c '\c' -c 'SELECT 1'
check list_of_databases sh -c 'psql -XAtl | grep -q "^terrace|"'
