\d
CREATE TABLE items (id int PRIMARY KEY, name varchar(20) NOT NULL DEFAULT 'x', v float8, at timestamp, ok bool DEFAULT true, n bigint);
CREATE UNIQUE INDEX items_name_key ON items (name);
CREATE INDEX items_nv ON items (n, v);
CREATE TABLE "Odd Name" (a text);
\d
\dt
\di
\d items
\d items_nv
\d items_pkey
\d "Odd Name"
\d nothing
\d+ items
\dt items
\dt nothing
\dn
\du
\df
\dv
\ds
\dT
\l
\dt+
\di+
\l+
\dn+
\db
\dx
SELECT table_name, table_type FROM information_schema.tables ORDER BY 1;
SELECT column_name, data_type, is_nullable, character_maximum_length FROM information_schema.columns WHERE table_name = 'items' ORDER BY ordinal_position;
SELECT relname, relkind FROM pg_class WHERE oid = 'items'::regclass;
SELECT 'nothing'::regclass;
SELECT a.attname FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY(i.indkey) WHERE i.indrelid = 'items'::regclass AND i.indisprimary;
SELECT t.typname, t.typtype FROM pg_catalog.pg_type t WHERE t.oid = 1043;
SELECT tablename, indexname, indexdef FROM pg_indexes ORDER BY 2;
SELECT current_database(), current_user, current_schema();
SELECT pg_catalog.pg_is_in_recovery();
SELECT count(*) > 0 FROM pg_settings;
CREATE TABLE checked (id serial PRIMARY KEY, n int CHECK (n > 0), m int UNIQUE, CONSTRAINT more CHECK (m > n));
\d checked
\dp checked
\d pg_locks
\dv terrace.pool
\dS pg_settings
\dD
\dC
SELECT conname, contype, conkey, pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'checked'::regclass ORDER BY 1;
SELECT 1259::regclass, count(*) FROM pg_class WHERE oid = 'terrace.pool'::regclass;
