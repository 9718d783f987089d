-- A database as programs make them: keys, views, sequences, identity, comments, indexes.
CREATE TABLE author (
    id serial PRIMARY KEY,
    name varchar(50) NOT NULL UNIQUE,
    born date,
    CONSTRAINT grown CHECK (born < '2020-01-01')
);
CREATE TABLE book (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    author_id int NOT NULL REFERENCES author ON DELETE CASCADE,
    title text NOT NULL,
    price numeric(8, 2) DEFAULT 0 CHECK (price >= 0),
    meta jsonb,
    at timestamptz DEFAULT now(),
    key uuid,
    raw bytea,
    note char(5),
    UNIQUE (author_id, title)
);
CREATE INDEX by_price ON book (price, title);
CREATE TABLE node (id int PRIMARY KEY, up int REFERENCES node DEFERRABLE INITIALLY DEFERRED, f float8, r real, s smallint, b bool, ts timestamp);
CREATE SEQUENCE counter START 100 INCREMENT 5;
CREATE VIEW dear AS SELECT b.title, a.name FROM book b JOIN author a ON a.id = b.author_id WHERE b.price > 1;
COMMENT ON TABLE book IS 'What is sold';
COMMENT ON COLUMN book.key IS 'it''s given outside';
INSERT INTO author (name, born) VALUES ('Ann', '1970-01-02'), ('Bob', NULL), (E'tab\there \\ "q" ü', '1900-01-01');
INSERT INTO book (author_id, title, price, meta, at, key, raw, note)
    SELECT 1 + g % 3, 'title ' || g, g / 4.0, '{"a": [1, null, "x"]}', '2024-02-29 12:00+00', '00000000-0000-0000-0000-00000000000f',
           '\x00ff', 'n' FROM generate_series(1, 100) AS g;
INSERT INTO book (author_id, title, at) VALUES (2, E'line\nfeed', '2024-01-01');
INSERT INTO node VALUES (1, NULL, 1.5, 'NaN', 1, true, '2024-02-29'), (2, 1, '-Infinity', 0.1, NULL, NULL, NULL), (3, 3, 1e300, NULL, -5, false, '1970-01-01');
SELECT nextval('counter'), nextval('counter');
