// lib/pq, as its documentation uses it: database/sql, arrays, bulk copies, LISTEN, errors.
package main

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/lib/pq"
)

var ctx = context.Background()

func fails(code string, err error) error {
	var of *pq.Error
	if !errors.As(err, &of) || string(of.Code) != code {
		return fmt.Errorf("%v instead of %s", err, code)
	}
	return nil
}

func checked[T any](wanted T, db *sql.DB, text string, args ...any) error {
	var found T
	if err := db.QueryRow(text, args...).Scan(&found); err != nil {
		return err
	}
	return same(found, wanted)
}

func main() {
	fmt.Println("version", versionOf("github.com/lib/pq"))
	db, err := sql.Open("postgres", "sslmode=disable")
	if err == nil {
		err = db.Ping()
	}
	check("connects", err)
	if err != nil {
		os.Exit(1)
	}
	check("tables_and_parameters", tables(db))
	check("arrays", arrays(db))
	check("json", documents(db))
	check("times", times(db))
	check("columns", columns(db))
	check("prepared", prepared(db))
	check("binary_parameters", binary())
	check("transactions", transactions(db))
	check("isolation_levels", isolation(db))
	check("errors", mistakes(db))
	check("copy_in", copied(db))
	check("copy_in_fails", badCopy(db))
	check("several_statements", several(db))
	check("several_results", results(db))
	check("notices", notices())
	check("notifications", notifications(db))
	check("cancelled", cancelled(db))
	check("search_path_of_the_connection", searched(db))
	check("returning", returning(db))
}

func tables(db *sql.DB) error {
	_, err := db.Exec(`CREATE TABLE p (id serial PRIMARY KEY, b bool, s smallint, i bigint, f float8, r real, n numeric(10, 2),
		t text, v varchar(10), c char(3), d date, ts timestamp, tz timestamptz, u uuid, by bytea)`)
	if err != nil {
		return err
	}
	day := time.Date(2024, 2, 29, 0, 0, 0, 0, time.UTC)
	noon := day.Add(12*time.Hour + 123456*time.Microsecond)
	row := []any{true, 7, int64(1) << 62, 1.5, 0.5, "12.30", "it's", "v", "ab", day, noon, noon, "00000000-0000-0000-0000-000000000005", []byte{0, 255}}
	done, err := db.Exec("INSERT INTO p (b, s, i, f, r, n, t, v, c, d, ts, tz, u, by) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)", row...)
	if err != nil {
		return err
	}
	count, err := done.RowsAffected()
	var b bool
	var s int16
	var i int64
	var f float64
	var n, t, c, u string
	var d, ts, tz time.Time
	var by []byte
	err2 := db.QueryRow("SELECT b, s, i, f, n, t, c, d, ts, tz, u, by FROM p WHERE id = $1", 1).Scan(&b, &s, &i, &f, &n, &t, &c, &d, &ts, &tz, &u, &by)
	return all(err, err2, same(count, int64(1)), same([]any{b, s, i, f, n, t, c, d.UTC(), ts.UTC(), tz.UTC(), u, by},
		[]any{true, int16(7), int64(1) << 62, 1.5, "12.30", "it's", "ab ", day, noon, noon, row[12], row[13]}))
}

func arrays(db *sql.DB) error {
	var numbers pq.Int64Array
	var texts pq.StringArray
	var bools []bool
	err := db.QueryRow("SELECT $1::bigint[], $2::text[], ARRAY[true, false]", pq.Array([]int64{1, 2}), pq.Array([]string{"a", `b"\`})).
		Scan(&numbers, &texts, pq.Array(&bools))
	return all(err, same([]int64(numbers), []int64{1, 2}), same([]string(texts), []string{"a", `b"\`}), same(bools, []bool{true, false}),
		checked(1, db, "SELECT count(*)::int FROM p WHERE id = ANY($1)", pq.Array([]int64{1, 9})))
}

type document map[string]any

func (d document) Value() (driver.Value, error) { return json.Marshal(d) }
func (d *document) Scan(from any) error         { return json.Unmarshal(from.([]byte), d) }

func documents(db *sql.DB) error {
	return checked(document{"a": 1.0}, db, "SELECT $1::jsonb", document{"a": 1})
}

func times(db *sql.DB) error {
	var at, infinite time.Time
	err := db.QueryRow("SELECT '2024-07-01 12:00+02'::timestamptz, '0044-03-15 BC'::date").Scan(&at, &infinite)
	return all(err, same(at.UTC(), time.Date(2024, 7, 1, 10, 0, 0, 0, time.UTC)), same(infinite.Year(), -43),
		checked("1 day 02:03:04", db, "SELECT $1::interval", "1 day 2:3:4"))
}

func columns(db *sql.DB) error {
	rows, err := db.Query("SELECT id, v, n, c, tz FROM p")
	if err != nil {
		return err
	}
	defer rows.Close()
	types, err := rows.ColumnTypes()
	if err != nil {
		return err
	}
	names := []string{}
	for _, of := range types {
		names = append(names, of.Name()+" "+of.DatabaseTypeName())
	}
	precision, scale, known := types[2].DecimalSize()
	return all(same(names, []string{"id INT4", "v VARCHAR", "n NUMERIC", "c BPCHAR", "tz TIMESTAMPTZ"}),
		same([]any{precision, scale, known}, []any{int64(10), int64(2), true}))
}

func prepared(db *sql.DB) error {
	statement, err := db.Prepare("SELECT $1::int + $2")
	if err != nil {
		return err
	}
	defer statement.Close()
	for n := range 10 {
		var found int
		if err := all(statement.QueryRow(n, 1).Scan(&found), same(found, n+1)); err != nil {
			return err
		}
	}
	return nil
}

func binary() error {
	db, err := sql.Open("postgres", "sslmode=disable binary_parameters=yes")
	if err != nil {
		return err
	}
	defer db.Close()
	return all(checked("it's", db, "SELECT $1::text", "it's"), checked([]byte{0, 1}, db, "SELECT $1::bytea", []byte{0, 1}))
}

func transactions(db *sql.DB) error {
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	_, err = tx.Exec("UPDATE p SET i = 1; SAVEPOINT a")
	_, bad := tx.Exec("SELECT nothing")
	_, failed := tx.Exec("SELECT 1")
	_, back := tx.Exec("ROLLBACK TO a")
	return all(err, fails("42703", bad), fails("25P02", failed), back, tx.Commit(), checked(int64(1), db, "SELECT i FROM p"))
}

func isolation(db *sql.DB) error {
	levels := map[sql.IsolationLevel]string{sql.LevelReadCommitted: "read committed", sql.LevelRepeatableRead: "repeatable read", sql.LevelSerializable: "serializable"}
	for level, name := range levels {
		tx, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: level, ReadOnly: true})
		if err != nil {
			return err
		}
		var found string
		err = tx.QueryRow("SHOW transaction_isolation").Scan(&found)
		_, refused := tx.Exec("DELETE FROM p")
		if err := all(err, same(found, name), fails("25006", refused), tx.Rollback()); err != nil {
			return err
		}
	}
	return nil
}

func mistakes(db *sql.DB) error {
	_, unique := db.Exec("INSERT INTO p (id) VALUES (1)")
	_, syntax := db.Exec("SELEKT 1")
	_, number := db.Exec("SELECT 1 / $1::int", 0)
	_, missing := db.Exec("INSERT INTO p (t) VALUES ($1)")
	var of *pq.Error
	errors.As(unique, &of)
	if err := all(fails("23505", unique), fails("42601", syntax), fails("22012", number)); err != nil {
		return err
	}
	if missing == nil {
		return errors.New("a parameter is missing, and nothing is said")
	}
	return same([]string{of.Code.Name(), of.Constraint, of.Table, of.Schema, of.Severity, of.Detail},
		[]string{"unique_violation", "p_pkey", "p", "public", "ERROR", "Key (id)=(1) already exists."})
}

func copied(db *sql.DB) error {
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	statement, err := tx.Prepare(pq.CopyIn("p", "t", "f", "tz", "by"))
	if err != nil {
		return err
	}
	for n := range 1000 {
		if _, err := statement.Exec(fmt.Sprint("é\t\\", n), 1.5, time.Unix(int64(n), 0), []byte{1, '\\'}); err != nil {
			return err
		}
	}
	_, err = statement.Exec()
	return all(err, statement.Close(), tx.Commit(), checked(1000, db, `SELECT count(*)::int FROM p WHERE t LIKE 'é_\\%' AND by = '\x015c'`))
}

func badCopy(db *sql.DB) error {
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	defer tx.Rollback()
	statement, err := tx.Prepare(pq.CopyInSchema("public", "p", "id"))
	if err != nil {
		return err
	}
	_, err = statement.Exec(1)
	_, bad := statement.Exec()
	return all(err, fails("23505", bad))
}

func several(db *sql.DB) error {
	_, err := db.Exec("CREATE TABLE q (a int); INSERT INTO q VALUES (1), (2); DELETE FROM q WHERE a = 1")
	return all(err, checked(2, db, "SELECT a FROM q"))
}

func results(db *sql.DB) error {
	rows, err := db.Query("SELECT 1; SELECT 'two'")
	if err != nil {
		return err
	}
	defer rows.Close()
	var one int
	var two string
	for rows.Next() {
		err = all(err, rows.Scan(&one))
	}
	if err != nil || !rows.NextResultSet() || !rows.Next() {
		return fmt.Errorf("no second result: %v, %v", err, rows.Err())
	}
	return all(rows.Scan(&two), same(one, 1), same(two, "two"))
}

func notices() error {
	base, err := pq.NewConnector("sslmode=disable")
	if err != nil {
		return err
	}
	told := ""
	db := sql.OpenDB(pq.ConnectorWithNoticeHandler(base, func(notice *pq.Error) { told = notice.Message }))
	defer db.Close()
	_, err = db.Exec("DROP TABLE IF EXISTS nothing")
	return all(err, same(told, `table "nothing" does not exist, skipping`))
}

func notifications(db *sql.DB) error {
	listener := pq.NewListener("sslmode=disable", time.Second, time.Minute, nil)
	defer listener.Close()
	if err := listener.Listen("news"); err != nil {
		return err
	}
	if _, err := db.Exec("SELECT pg_notify($1, $2)", "news", "hello"); err != nil {
		return err
	}
	select {
	case note := <-listener.Notify:
		return all(same([]string{note.Channel, note.Extra}, []string{"news", "hello"}), listener.Ping())
	case <-time.After(5 * time.Second):
		return errors.New("no notification")
	}
}

func cancelled(db *sql.DB) error {
	limited, stop := context.WithTimeout(ctx, 300*time.Millisecond)
	defer stop()
	_, err := db.ExecContext(limited, "SELECT pg_sleep(20)")
	if err == nil {
		return errors.New("it was not cancelled")
	}
	return checked(1, db, "SELECT 1")
}

func searched(db *sql.DB) error {
	_, err := db.Exec("CREATE SCHEMA other; CREATE TABLE other.there (a int); INSERT INTO other.there VALUES (3)")
	if err != nil {
		return err
	}
	own, err := sql.Open("postgres", "sslmode=disable search_path=other application_name=part")
	if err != nil {
		return err
	}
	defer own.Close()
	return all(checked(3, own, "SELECT a FROM there"), checked("part", own, "SHOW application_name"))
}

func returning(db *sql.DB) error {
	var id int
	err := db.QueryRow("INSERT INTO p (t) VALUES ($1) RETURNING id", "new").Scan(&id)
	var old string
	err2 := db.QueryRow("UPDATE p SET t = 'newer' FROM q WHERE p.id = $1 AND q.a = 2 RETURNING p.t || q.a", id).Scan(&old)
	return all(err, err2, same(old, "newer2"))
}
