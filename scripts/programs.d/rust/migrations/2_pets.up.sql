CREATE TABLE pets (
    id int PRIMARY KEY,
    owner bigint NOT NULL REFERENCES people ON DELETE CASCADE,
    name varchar(20) NOT NULL,
    weight numeric(6, 2) CHECK (weight > 0),
    tags text[] NOT NULL DEFAULT '{}',
    about jsonb
);
CREATE INDEX pets_owner ON pets (owner);
