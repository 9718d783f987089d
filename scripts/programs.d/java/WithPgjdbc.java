// pgjdbc, as its documentation uses it: parameters in both protocols, types, batches, keys, cursors, metadata, COPY, errors.
import java.io.StringReader;
import java.io.StringWriter;
import java.math.BigDecimal;
import java.sql.BatchUpdateException;
import java.sql.Connection;
import java.sql.Date;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Savepoint;
import java.sql.Statement;
import java.sql.Timestamp;
import java.sql.Types;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.UUID;
import org.postgresql.PGConnection;
import org.postgresql.util.PGobject;
import org.postgresql.util.PSQLException;

public final class WithPgjdbc {
    public static void main(String[] arguments) throws Exception {
        Checks.begin(org.postgresql.util.DriverInfo.DRIVER_VERSION);
        Connection db = Checks.connect("");
        Checks.check("connects", () -> {
            Checks.same(db.getMetaData().getDatabaseProductName(), "PostgreSQL");
            Checks.same(db.isValid(5), true);
            Checks.same(db.getSchema(), "public");
        });
        Checks.check("tables", () -> run(db, "CREATE TABLE p (id serial PRIMARY KEY, b bool, s smallint, i bigint, f float8, r real, "
            + "n numeric(10, 2), t text UNIQUE, v varchar(10) DEFAULT 'v', d date, ts timestamp, tz timestamptz, u uuid, by bytea, j jsonb, a int[])"));
        // A statement that was run five times is prepared on the server, and its values come in binary.
        Checks.check("values", () -> { for (int n = 0; n < 8; n++) values(db, n); });
        Checks.check("values_simple", () -> {
            try (Connection simple = Checks.connect("?preferQueryMode=simple")) { values(simple, 100); }
        });
        Checks.check("arrays", () -> arrays(db));
        Checks.check("generated_keys", () -> keys(db));
        Checks.check("batches", () -> batches(db, "b"));
        Checks.check("batches_rewritten", () -> {
            try (Connection other = Checks.connect("?reWriteBatchedInserts=true")) { batches(other, "c"); }
        });
        Checks.check("batch_with_an_error", () -> brokenBatch(db));
        Checks.check("transactions", () -> transactions(db));
        Checks.check("isolation_levels", () -> isolation(db));
        Checks.check("cursor", () -> cursor(db));
        Checks.check("scrolls_and_updates", () -> updates(db));
        Checks.check("copies", () -> copies(db));
        Checks.check("errors", () -> errors(db));
        Checks.check("functions", () -> {
            Checks.same(one(db, "SELECT {fn concat('a', 'b')} || {fn ucase('c')}"), "abC");
            Checks.same(one(db, "SELECT {d '2024-02-29'}::text"), "2024-02-29");
            Checks.same(one(db, "SELECT {fn timestampdiff(SQL_TSI_DAY, {ts '2024-02-28 00:00:00'}, {ts '2024-03-01 00:00:00'})}::text"), "2");
        });
        Checks.check("enums", () -> {
            run(db, "CREATE TYPE mood AS ENUM ('sad', 'ok')");
            run(db, "CREATE TABLE moods (m mood)");
            PreparedStatement add = db.prepareStatement("INSERT INTO moods VALUES (?)");
            add.setObject(1, "ok", Types.OTHER);
            add.executeUpdate();
            Checks.same(one(db, "SELECT m FROM moods"), "ok");
        });
        Checks.check("statements_after_ddl", () -> {
            PreparedStatement all = db.prepareStatement("SELECT * FROM moods");
            for (int n = 0; n < 8; n++) all.executeQuery().close();
            run(db, "ALTER TABLE moods ADD COLUMN n int DEFAULT 3");
            ResultSet found = all.executeQuery();
            found.next();
            Checks.same(found.getInt("n"), 3);
        });
        Checks.check("metadata_of_tables", () -> {
            Checks.same(names(db.getMetaData().getTables(null, "public", "%", new String[] {"TABLE"}), "TABLE_NAME"), List.of("moods", "p"));
            Checks.same(names(db.getMetaData().getSchemas(), "TABLE_SCHEM").contains("public"), true);
            Checks.same(names(db.getMetaData().getTableTypes(), "TABLE_TYPE").contains("VIEW"), true);
        });
        Checks.check("metadata_of_columns", () -> columns(db));
        Checks.check("metadata_of_keys", () -> metadataOfKeys(db));
        Checks.check("metadata_of_types", () -> {
            Checks.same(names(db.getMetaData().getTypeInfo(), "TYPE_NAME").containsAll(List.of("int4", "text", "jsonb", "mood")), true);
            Checks.same(names(db.getMetaData().getFunctions(null, null, "lower"), "FUNCTION_NAME").contains("lower"), true);
            db.getMetaData().getProcedures(null, null, "%").close();
            db.getMetaData().getTablePrivileges(null, "public", "p").close();
        });
        Checks.check("metadata_of_results", () -> {
            var found = db.prepareStatement("SELECT id AS x, n, t || 'a' AS y FROM p").getMetaData();
            Checks.same(List.of(found.getColumnLabel(1), found.getColumnTypeName(2), found.getPrecision(2), found.getScale(2)),
                List.of("x", "numeric", 10, 2));
            Checks.same(List.of(found.getTableName(1), found.isAutoIncrement(1), found.isNullable(1)), List.of("p", true, 0));
            Checks.same(((org.postgresql.PGResultSetMetaData) found).getBaseColumnName(1), "id");
        });
        Checks.check("metadata_of_parameters", () -> {
            var found = db.prepareStatement("SELECT * FROM p WHERE id = ? AND t = ?").getParameterMetaData();
            Checks.same(List.of(found.getParameterTypeName(1), found.getParameterTypeName(2)), List.of("int4", "text"));
        });
        Checks.check("notifications", () -> {
            run(db, "LISTEN news");
            try (Connection other = Checks.connect("")) { run(other, "NOTIFY news, 'hello'"); }
            Checks.same(db.unwrap(PGConnection.class).getNotifications(5000)[0].getParameter(), "hello");
        });
        Checks.check("cancelled", () -> {
            Statement slow = db.createStatement();
            slow.setQueryTimeout(1);
            Checks.fails("57014", () -> slow.execute("SELECT pg_sleep(20)"));
        });
        Checks.check("large_objects", () -> {
            db.setAutoCommit(false);
            try { db.unwrap(PGConnection.class).getLargeObjectAPI().createLO(); } finally { db.rollback(); db.setAutoCommit(true); }
        });
    }

    static void run(Connection db, String text) throws SQLException {
        try (Statement s = db.createStatement()) { s.execute(text); }
    }

    static String one(Connection db, String text) throws SQLException {
        try (Statement s = db.createStatement(); ResultSet found = s.executeQuery(text)) {
            found.next();
            return found.getString(1);
        }
    }

    static List<String> names(ResultSet rows, String column) throws SQLException {
        List<String> found = new ArrayList<>();
        while (rows.next()) found.add(rows.getString(column));
        return found;
    }

    static void values(Connection db, int n) throws Exception {
        UUID uuid = new UUID(1, n);
        PGobject json = new PGobject();
        json.setType("jsonb");
        json.setValue("{\"a\": 1}");
        OffsetDateTime noon = OffsetDateTime.of(2024, 2, 29, 12, 0, 0, 123456000, ZoneOffset.UTC);
        try (PreparedStatement add = db.prepareStatement(
            "INSERT INTO p (b, s, i, f, r, n, t, d, ts, tz, u, by, j) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")) {
            Object[] row = {true, (short) 7, 1L << 62, 1.5, 0.5f, new BigDecimal("12.30"), "it's ?" + n, LocalDate.of(2024, 2, 29),
                noon.toLocalDateTime(), noon, uuid, new byte[] {0, -1}, json};
            for (int k = 0; k < row.length; k++) add.setObject(k + 1, row[k]);
            Checks.same(add.executeUpdate(), 1);
        }
        PreparedStatement query = db.prepareStatement("SELECT b, s, i, f, r, n, t, d, ts, tz, u, by, j, v, NULL::int FROM p WHERE t = ? AND d = ?");
        query.setString(1, "it's ?" + n);
        query.setDate(2, Date.valueOf("2024-02-29"));
        ResultSet found = query.executeQuery();
        Checks.same(found.next(), true);
        Checks.same(List.of(found.getBoolean(1), found.getShort(2), found.getLong(3), found.getDouble(4), found.getFloat(5), found.getBigDecimal(6)),
            List.of(true, (short) 7, 1L << 62, 1.5, 0.5f, new BigDecimal("12.30")));
        Checks.same(List.of(found.getString(7), found.getObject(8, LocalDate.class), found.getObject(9, LocalDateTime.class), found.getObject(10, OffsetDateTime.class)),
            List.of("it's ?" + n, LocalDate.of(2024, 2, 29), noon.toLocalDateTime(), noon));
        Checks.same(List.of(found.getObject(11), found.getString(13), found.getString(14)), List.of(uuid, "{\"a\": 1}", "v"));
        Checks.same(found.getBytes(12), new byte[] {0, -1});
        Checks.same(found.getInt(15) == 0 && found.wasNull(), true);
    }

    static void arrays(Connection db) throws Exception {
        PreparedStatement set = db.prepareStatement("UPDATE p SET a = ? WHERE id = ANY (?)");
        set.setArray(1, db.createArrayOf("int4", new Integer[] {1, null, 3}));
        set.setArray(2, db.createArrayOf("int4", new Integer[] {1, 2}));
        Checks.same(set.executeUpdate(), 2);
        for (int n = 0; n < 8; n++) {
            PreparedStatement get = db.prepareStatement("SELECT a, ARRAY['x', 'y,z'] FROM p WHERE id = 1");
            ResultSet found = get.executeQuery();
            found.next();
            Checks.same(Arrays.asList((Object[]) found.getArray(1).getArray()), Arrays.asList(1, null, 3));
            Checks.same(found.getArray(2).getArray(), new String[] {"x", "y,z"});
        }
    }

    static void keys(Connection db) throws Exception {
        PreparedStatement add = db.prepareStatement("INSERT INTO p (t) VALUES (?), (?)", Statement.RETURN_GENERATED_KEYS);
        add.setString(1, "k1");
        add.setString(2, "k2");
        add.executeUpdate();
        Checks.same(names(add.getGeneratedKeys(), "v"), List.of("v", "v"));
        PreparedStatement named = db.prepareStatement("INSERT INTO p (t) VALUES ('k3')", new String[] {"id"});
        named.executeUpdate();
        ResultSet key = named.getGeneratedKeys();
        Checks.same(key.next() && key.getInt(1) > 0, true);
    }

    static void batches(Connection db, String prefix) throws Exception {
        PreparedStatement add = db.prepareStatement("INSERT INTO p (t, i) VALUES (?, ?)");
        for (int n = 0; n < 1000; n++) {
            add.setString(1, prefix + n);
            add.setLong(2, n);
            add.addBatch();
        }
        Checks.same(add.executeBatch().length, 1000);
        Checks.same(one(db, "SELECT sum(i) FROM p WHERE t LIKE '" + prefix + "%'"), "499500");
    }

    static void brokenBatch(Connection db) throws Exception {
        db.setAutoCommit(false);
        Statement batch = db.createStatement();
        batch.addBatch("INSERT INTO p (t) VALUES ('before')");
        batch.addBatch("INSERT INTO p (id) VALUES (1)");
        batch.addBatch("INSERT INTO p (t) VALUES ('after')");
        SQLException error = Checks.fails("23505", batch::executeBatch);
        Checks.same(error instanceof BatchUpdateException, true);
        db.rollback();
        db.setAutoCommit(true);
        Checks.same(one(db, "SELECT count(*) FROM p WHERE t IN ('before', 'after')"), "0");
    }

    static void transactions(Connection db) throws Exception {
        db.setAutoCommit(false);
        run(db, "UPDATE p SET i = 1 WHERE id = 1");
        Savepoint here = db.setSavepoint("here");
        Checks.fails("22012", () -> run(db, "SELECT 1 / 0"));
        Checks.fails("25P02", () -> run(db, "SELECT 1"));
        db.rollback(here);
        db.releaseSavepoint(here);
        db.commit();
        db.setAutoCommit(true);
        Checks.same(one(db, "SELECT i FROM p WHERE id = 1"), "1");
        try (Connection safe = Checks.connect("?autosave=always")) {
            safe.setAutoCommit(false);
            run(safe, "UPDATE p SET i = 2 WHERE id = 1");
            Checks.fails("22012", () -> run(safe, "SELECT 1 / 0"));
            safe.commit();
        }
        Checks.same(one(db, "SELECT i FROM p WHERE id = 1"), "2");
    }

    static void isolation(Connection db) throws Exception {
        for (int level : new int[] {Connection.TRANSACTION_SERIALIZABLE, Connection.TRANSACTION_REPEATABLE_READ, Connection.TRANSACTION_READ_COMMITTED}) {
            db.setTransactionIsolation(level);
            Checks.same(db.getTransactionIsolation(), level);
        }
        db.setReadOnly(true);
        db.setAutoCommit(false);
        Checks.fails("25006", () -> run(db, "DELETE FROM p"));
        db.rollback();
        db.setAutoCommit(true);
        db.setReadOnly(false);
    }

    static void cursor(Connection db) throws Exception {
        db.setAutoCommit(false);
        Statement query = db.createStatement();
        query.setFetchSize(100);
        ResultSet found = query.executeQuery("SELECT g FROM generate_series(1, 1050) AS g");
        int n = 0;
        while (found.next()) n += found.getInt(1) > 0 ? 1 : 0;
        Checks.same(n, 1050);
        db.commit();
        db.setAutoCommit(true);
        query.setMaxRows(7);
        Checks.same(names(query.executeQuery("SELECT t FROM p"), "t").size(), 7);
    }

    static void updates(Connection db) throws Exception {
        Statement s = db.createStatement(ResultSet.TYPE_SCROLL_INSENSITIVE, ResultSet.CONCUR_UPDATABLE);
        ResultSet rows = s.executeQuery("SELECT id, t, n FROM p WHERE id <= 3 ORDER BY id");
        Checks.same(rows.last() && rows.getRow() == 3, true);
        rows.absolute(2);
        rows.updateBigDecimal("n", new BigDecimal("9.99"));
        rows.updateRow();
        rows.moveToInsertRow();
        rows.updateString("t", "new");
        rows.updateInt("id", 100000);
        rows.insertRow();
        Checks.same(one(db, "SELECT n FROM p WHERE id = 2"), "9.99");
        rows.first();
        rows.refreshRow();
        Checks.same(one(db, "SELECT count(*) FROM p WHERE t = 'new'"), "1");
    }

    static void copies(Connection db) throws Exception {
        var copy = db.unwrap(PGConnection.class).getCopyAPI();
        Checks.same(copy.copyIn("COPY p (t, i) FROM STDIN WITH (FORMAT csv)", new StringReader("é1,1\n\"é,2\",2\n")), 2L);
        StringWriter out = new StringWriter();
        copy.copyOut("COPY (SELECT t, i FROM p WHERE t LIKE 'é%' ORDER BY i) TO STDOUT", out);
        Checks.same(out.toString(), "é1\t1\né,2\t2\n");
        Checks.fails("22P02", () -> copy.copyIn("COPY p (i) FROM STDIN", new StringReader("x\n")));
    }

    static void errors(Connection db) throws Exception {
        PSQLException unique = (PSQLException) Checks.fails("23505", () -> run(db, "INSERT INTO p (id) VALUES (1)"));
        var of = unique.getServerErrorMessage();
        Checks.same(List.of(of.getConstraint(), of.getTable(), of.getSchema()), List.of("p_pkey", "p", "public"));
        Checks.fails("42703", () -> run(db, "SELECT nothing FROM p"));
        Checks.fails("42601", () -> run(db, "SELEKT 1"));
        Checks.fails("22001", () -> run(db, "INSERT INTO p (v) VALUES ('longer than ten')"));
        Statement s = db.createStatement();
        s.execute("DROP TABLE IF EXISTS nothing");
        Checks.same(s.getWarnings().getMessage(), "table \"nothing\" does not exist, skipping");
    }

    static void columns(Connection db) throws Exception {
        ResultSet found = db.getMetaData().getColumns(null, "public", "p", "%");
        List<List<Object>> columns = new ArrayList<>();
        while (found.next()) {
            if (List.of("id", "n", "v").contains(found.getString("COLUMN_NAME"))) {
                columns.add(List.of(found.getString("COLUMN_NAME"), found.getInt("DATA_TYPE"), found.getString("TYPE_NAME"), found.getInt("COLUMN_SIZE"),
                    found.getInt("DECIMAL_DIGITS"), found.getString("IS_NULLABLE"), found.getString("IS_AUTOINCREMENT")));
            }
        }
        Checks.same(columns, List.of(List.of("id", Types.INTEGER, "serial", 10, 0, "NO", "YES"),
            List.of("n", Types.NUMERIC, "numeric", 10, 2, "YES", "NO"), List.of("v", Types.VARCHAR, "varchar", 10, 0, "YES", "NO")));
        found = db.getMetaData().getColumns(null, "public", "p", "v");
        found.next();
        Checks.same(found.getString("COLUMN_DEF"), "'v'::character varying");
    }

    static void metadataOfKeys(Connection db) throws Exception {
        run(db, "CREATE TABLE c (p int REFERENCES p ON DELETE CASCADE)");
        run(db, "CREATE INDEX c_p ON c (p DESC)");
        var meta = db.getMetaData();
        Checks.same(names(meta.getPrimaryKeys(null, "public", "p"), "COLUMN_NAME"), List.of("id"));
        Checks.same(names(meta.getImportedKeys(null, "public", "c"), "FK_NAME"), List.of("c_p_fkey"));
        Checks.same(names(meta.getExportedKeys(null, "public", "p"), "FKTABLE_NAME"), List.of("c"));
        Checks.same(names(meta.getCrossReference(null, "public", "p", null, "public", "c"), "DELETE_RULE"), List.of("0"));
        Checks.same(names(meta.getIndexInfo(null, "public", "c", false, false), "ASC_OR_DESC"), List.of("D"));
        Checks.same(names(meta.getIndexInfo(null, "public", "p", true, false), "INDEX_NAME"), List.of("p_pkey", "p_t_key"));
        Checks.same(names(meta.getBestRowIdentifier(null, "public", "p", 2, true), "COLUMN_NAME"), List.of("id"));
    }
}
