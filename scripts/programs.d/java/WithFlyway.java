// Flyway: migrations, a repeatable one, validation, a failing one, repair, baseline, undoing all by clean.
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.util.Arrays;
import java.util.List;
import org.flywaydb.core.Flyway;
import org.flywaydb.core.api.MigrationState;
import org.flywaydb.database.postgresql.PostgreSQLConfigurationExtension;

public final class WithFlyway {
    static Path folder;

    public static void main(String[] arguments) throws Exception {
        Checks.begin(org.flywaydb.core.internal.license.VersionPrinter.getVersion());
        folder = Files.createTempDirectory("flyway");
        write("V1__tables.sql", "CREATE TABLE author (id serial PRIMARY KEY, name text NOT NULL);\n"
            + "CREATE TABLE book (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, author int REFERENCES author, title varchar(50));\n"
            + "COMMENT ON TABLE book IS 'What is sold';\n");
        write("V2__rows.sql", "INSERT INTO author (name) VALUES ('Ann; with ''quotes''');\nCOPY book (author, title) FROM STDIN;\n1\tA\n1\tB\n\\.\n");
        write("R__views.sql", "CREATE OR REPLACE VIEW titles AS SELECT title FROM book;\n");
        Checks.check("migrates", () -> Checks.same(flyway().migrate().migrationsExecuted, 3));
        Checks.check("nothing_to_do", () -> Checks.same(flyway().migrate().migrationsExecuted, 0));
        Checks.check("rows", () -> {
            try (Connection db = Checks.connect("")) { Checks.same(WithPgjdbc.one(db, "SELECT count(*) FROM titles"), "2"); }
        });
        Checks.check("info", () -> Checks.same(states(), List.of("SUCCESS", "SUCCESS", "SUCCESS")));
        Checks.check("validates", () -> flyway().validate());
        Checks.check("repeats_what_changed", () -> {
            write("R__views.sql", "CREATE OR REPLACE VIEW titles AS SELECT title, author FROM book;\n");
            write("V3__alters.sql", "ALTER TABLE book ADD COLUMN price numeric(8, 2) NOT NULL DEFAULT 0;\nCREATE INDEX by_price ON book (price);\n");
            Checks.same(flyway().migrate().migrationsExecuted, 2);
        });
        Checks.check("outside_a_transaction", () -> {
            write("V4__concurrently.sql", "CREATE INDEX CONCURRENTLY by_title ON book (title);\n");
            var options = Flyway.configure().dataSource(Checks.URL, Checks.USER, "").locations("filesystem:" + folder);
            // The lock of a transaction would be waited for.
            options.getConfigurationExtension(PostgreSQLConfigurationExtension.class).setTransactionalLock(false);
            Checks.same(options.load().migrate().migrationsExecuted, 1);
        });
        Checks.check("failing_migration", () -> {
            write("V5__fails.sql", "CREATE TABLE never (n int);\nINSERT INTO never VALUES ('x');\n");
            Checks.fails("22P02", () -> flyway().migrate());
            try (Connection db = Checks.connect("")) { Checks.same(WithPgjdbc.one(db, "SELECT to_regclass('never')"), null); }
            Files.delete(folder.resolve("V5__fails.sql"));
        });
        Checks.check("repairs", () -> {
            write("V1__tables.sql", "-- changed\n");
            try {
                flyway().validate();
                throw new AssertionError("a changed migration is not seen");
            } catch (org.flywaydb.core.api.FlywayException e) {
                flyway().repair();
                flyway().validate();
            }
        });
        Checks.check("cleans", () -> {
            flyway().clean();
            try (Connection db = Checks.connect("")) {
                Checks.same(WithPgjdbc.one(db, "SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace"), "0");
            }
        });
        Checks.check("baseline_in_a_schema", () -> {
            var other = Flyway.configure().dataSource(Checks.URL, Checks.USER, "").locations("filesystem:" + folder).schemas("other")
                .baselineVersion("3").baselineOnMigrate(true).load();
            other.baseline();
            Checks.same(Arrays.stream(other.info().applied()).map(i -> i.getState()).toList().contains(MigrationState.BASELINE), true);
        });
    }

    static void write(String name, String text) throws Exception {
        Files.writeString(folder.resolve(name), text);
    }

    static Flyway flyway() {
        return Flyway.configure().dataSource(Checks.URL, Checks.USER, "").locations("filesystem:" + folder).cleanDisabled(false).load();
    }

    static List<String> states() {
        return Arrays.stream(flyway().info().all()).map(i -> i.getState().name()).toList();
    }
}
