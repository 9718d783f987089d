DROP TABLE people;
DROP DOMAIN percent;
DROP TYPE item;
DROP TYPE mood;
