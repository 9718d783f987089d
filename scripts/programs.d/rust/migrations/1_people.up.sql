CREATE TYPE mood AS ENUM ('sad', 'very_happy');
CREATE TYPE item AS (name text, price numeric);
CREATE DOMAIN percent AS int CHECK (VALUE BETWEEN 0 AND 100);
CREATE TABLE people (
    id bigserial PRIMARY KEY,
    name text NOT NULL UNIQUE,
    mood mood,
    born date,
    added timestamptz NOT NULL DEFAULT now()
);
