// pgx, as its documentation uses it: parameters, transactions, batches, CopyFrom, a pool, database/sql.
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib"
)

var ctx = context.Background()

func fails(code string, err error) error {
	var of *pgconn.PgError
	if !errors.As(err, &of) || of.Code != code {
		return fmt.Errorf("%v instead of %s", err, code)
	}
	return nil
}

func value[T any](db *pgx.Conn, text string, args ...any) (found T, err error) {
	err = db.QueryRow(ctx, text, args...).Scan(&found)
	return
}

func checked[T any](wanted T, db *pgx.Conn, text string, args ...any) error {
	found, err := value[T](db, text, args...)
	if err != nil {
		return err
	}
	return same(found, wanted)
}

func main() {
	fmt.Println("version", versionOf("github.com/jackc/pgx/v5"))
	db, err := pgx.Connect(ctx, "")
	if err != nil {
		fmt.Println("no connects:", err)
		os.Exit(1)
	}
	fmt.Println("ok connects")
	checks := []struct {
		name string
		run  func() error
	}{
		{"tables_and_parameters", func() error { return tables(db) }},
		{"arrays", func() error { return arrays(db) }},
		{"json", func() error {
			return checked(map[string]any{"a": 1.0}, db, "SELECT $1::jsonb", map[string]any{"a": 1})
		}},
		{"intervals_and_times", func() error {
			return all(checked(25*time.Hour, db, "SELECT $1::interval", 25*time.Hour),
				checked(pgtype.Time{Microseconds: 3600e6, Valid: true}, db, "SELECT time '01:00'"))
		}},
		{"rows_as_structures", func() error { return structures(db) }},
		{"transactions", func() error { return transactions(db) }},
		{"isolation_levels", func() error { return isolation(db) }},
		{"errors", func() error { return mistakes(db) }},
		{"batches", func() error { return batches(db) }},
		{"batch_with_an_error", func() error { return brokenBatch(db) }},
		{"copy_from", func() error { return copied(db) }},
		{"statements_after_ddl", func() error { return afterDefinition(db) }},
		{"simple_protocol", func() error {
			return checked("it's \\", db, "SELECT $1::text", pgx.QueryExecModeSimpleProtocol, "it's \\")
		}},
		{"exec_mode", func() error {
			return checked(3, db, "SELECT $1::int + 1", pgx.QueryExecModeExec, 2)
		}},
		{"pool", pooled},
		{"database_sql", standard},
		{"notifications", func() error { return notifications(db) }},
		{"cancelled", func() error { return cancelled() }},
		{"enums", func() error { return enums(db) }},
	}
	for _, one := range checks {
		check(one.name, one.run())
		if db.PgConn().TxStatus() != 'I' {
			_, _ = db.Exec(ctx, "ROLLBACK")
		}
	}
}

func tables(db *pgx.Conn) error {
	_, err := db.Exec(ctx, `CREATE TABLE p (id serial PRIMARY KEY, b bool, s smallint, i bigint, f float8, r real, n numeric(10, 2),
		t text, v varchar(10), d date, ts timestamp, tz timestamptz, u uuid, by bytea)`)
	if err != nil {
		return err
	}
	day := time.Date(2024, 2, 29, 0, 0, 0, 0, time.UTC)
	noon := day.Add(12*time.Hour + 123456*time.Microsecond)
	row := []any{true, int16(7), int64(1) << 62, 1.5, float32(0.5), "12.30", "it's", "v", day, noon, noon, "00000000-0000-0000-0000-000000000005", []byte{0, 255}}
	_, err = db.Exec(ctx, "INSERT INTO p (b, s, i, f, r, n, t, v, d, ts, tz, u, by) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)", row...)
	if err != nil {
		return err
	}
	var b bool
	var s int16
	var i int64
	var f float64
	var n, t, u string
	var d, ts, tz time.Time
	var by []byte
	err = db.QueryRow(ctx, "SELECT b, s, i, f, n::text, t, d, ts, tz, u::text, by FROM p WHERE id = $1", 1).Scan(&b, &s, &i, &f, &n, &t, &d, &ts, &tz, &u, &by)
	if err != nil {
		return err
	}
	return same([]any{b, s, i, f, n, t, d, ts, tz.UTC(), u, by},
		[]any{true, int16(7), int64(1) << 62, 1.5, "12.30", "it's", day, noon, noon, row[11], row[12]})
}

func arrays(db *pgx.Conn) error {
	return all(checked([]int32{1, 2}, db, "SELECT $1::int[]", []int32{1, 2}),
		checked([]string{"a", "b"}, db, "SELECT $1::text[]", []string{"a", "b"}),
		checked(1, db, "SELECT count(*)::int FROM p WHERE id = ANY($1)", []int{1, 9}))
}

func structures(db *pgx.Conn) error {
	type P struct {
		ID int
		T  string
	}
	rows, _ := db.Query(ctx, "SELECT id, t FROM p")
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[P])
	if err != nil {
		return err
	}
	return same(found, []P{{1, "it's"}})
}

func transactions(db *pgx.Conn) error {
	back := errors.New("back")
	err := pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "UPDATE p SET i = 1")
		if err != nil {
			return err
		}
		inner := pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "UPDATE p SET i = 2")
			return all(err, back)
		})
		return same(inner, back)
	})
	return all(err, checked(int64(1), db, "SELECT i FROM p"))
}

func isolation(db *pgx.Conn) error {
	for _, level := range []pgx.TxIsoLevel{pgx.ReadCommitted, pgx.RepeatableRead, pgx.Serializable} {
		tx, err := db.BeginTx(ctx, pgx.TxOptions{IsoLevel: level, AccessMode: pgx.ReadOnly, DeferrableMode: pgx.NotDeferrable})
		if err != nil {
			return err
		}
		var found string
		if err := all(tx.QueryRow(ctx, "SHOW transaction_isolation").Scan(&found), same(found, string(level)), tx.Rollback(ctx)); err != nil {
			return err
		}
	}
	return nil
}

func mistakes(db *pgx.Conn) error {
	_, unique := db.Exec(ctx, "INSERT INTO p (id) VALUES (1)")
	_, column := db.Exec(ctx, "SELECT nothing FROM p")
	_, syntax := db.Exec(ctx, "SELEKT 1")
	_, number := db.Exec(ctx, "SELECT 1 / $1::int", 0)
	var of *pgconn.PgError
	errors.As(unique, &of)
	return all(fails("23505", unique), fails("42703", column), fails("42601", syntax), fails("22012", number),
		same([]string{of.ConstraintName, of.TableName, of.SchemaName}, []string{"p_pkey", "p", "public"}))
}

func batches(db *pgx.Conn) error {
	batch := &pgx.Batch{}
	for n := range 10 {
		batch.Queue("SELECT $1::int * 2", n)
	}
	results := db.SendBatch(ctx, batch)
	for n := range 10 {
		var found int
		if err := all(results.QueryRow().Scan(&found), same(found, n*2)); err != nil {
			return err
		}
	}
	return results.Close()
}

func brokenBatch(db *pgx.Conn) error {
	batch := &pgx.Batch{}
	batch.Queue("INSERT INTO p (t) VALUES ('before')")
	batch.Queue("SELECT 1 / $1::int", 0)
	batch.Queue("INSERT INTO p (t) VALUES ('after')")
	return all(fails("22012", db.SendBatch(ctx, batch).Close()), checked(0, db, "SELECT count(*)::int FROM p WHERE t IN ('before', 'after')"))
}

func copied(db *pgx.Conn) error {
	rows := [][]any{}
	for n := range 1000 {
		rows = append(rows, []any{fmt.Sprint("é", n), 1.5, time.Unix(int64(n), 0)})
	}
	n, err := db.CopyFrom(ctx, pgx.Identifier{"p"}, []string{"t", "f", "tz"}, pgx.CopyFromRows(rows))
	_, bad := db.CopyFrom(ctx, pgx.Identifier{"p"}, []string{"id"}, pgx.CopyFromRows([][]any{{1}}))
	return all(err, same(n, int64(1000)), checked(1000, db, "SELECT count(*)::int FROM p WHERE t LIKE 'é%'"), fails("23505", bad))
}

func afterDefinition(db *pgx.Conn) error {
	if err := checked(1, db, "SELECT id FROM p WHERE id = $1", 1); err != nil {
		return err
	}
	_, err := db.Exec(ctx, "ALTER TABLE p ADD COLUMN later int DEFAULT 5")
	return all(err, checked(1, db, "SELECT id FROM p WHERE id = $1", 1), checked(5, db, "SELECT later FROM p WHERE id = $1", 1))
}

func pooled() error {
	pool, err := pgxpool.New(ctx, "")
	if err != nil {
		return err
	}
	defer pool.Close()
	found := make(chan error)
	for n := range 20 {
		go func() {
			var one int
			found <- all(pool.QueryRow(ctx, "SELECT $1::int", n).Scan(&one), same(one, n))
		}()
	}
	for range 20 {
		err = all(err, <-found)
	}
	return err
}

func standard() error {
	db, err := sql.Open("pgx", "")
	if err != nil {
		return err
	}
	defer db.Close()
	var n int
	var null sql.NullString
	tx, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
	if err != nil {
		return err
	}
	return all(tx.QueryRow("SELECT $1::int, NULL::text", 5).Scan(&n, &null), same(n, 5), same(null.Valid, false), tx.Commit())
}

func notifications(db *pgx.Conn) error {
	listener, err := pgx.Connect(ctx, "")
	if err != nil {
		return err
	}
	defer listener.Close(ctx)
	_, err = listener.Exec(ctx, "LISTEN news")
	_, err2 := db.Exec(ctx, "SELECT pg_notify($1, $2)", "news", "hello")
	if err := all(err, err2); err != nil {
		return err
	}
	limited, stop := context.WithTimeout(ctx, 5*time.Second)
	defer stop()
	note, err := listener.WaitForNotification(limited)
	if err != nil {
		return err
	}
	return same([]string{note.Channel, note.Payload}, []string{"news", "hello"})
}

func cancelled() error {
	limited, stop := context.WithTimeout(ctx, 300*time.Millisecond)
	defer stop()
	db, err := pgx.Connect(ctx, "")
	if err != nil {
		return err
	}
	defer db.Close(ctx)
	_, err = db.Exec(limited, "SELECT pg_sleep(20)")
	if !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%v", err)
	}
	return nil
}

func enums(db *pgx.Conn) error {
	_, err := db.Exec(ctx, "CREATE TYPE mood AS ENUM ('sad', 'ok')")
	if err != nil {
		return err
	}
	of, err := db.LoadType(ctx, "mood")
	if err != nil {
		return err
	}
	db.TypeMap().RegisterType(of)
	return checked("ok", db, "SELECT 'ok'::mood")
}
