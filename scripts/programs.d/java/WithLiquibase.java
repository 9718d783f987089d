// Liquibase: a change log in YAML, its lock and log, contexts, rolling back, a snapshot, what differs.
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import liquibase.Contexts;
import liquibase.LabelExpression;
import liquibase.Liquibase;
import liquibase.database.Database;
import liquibase.database.DatabaseFactory;
import liquibase.database.jvm.JdbcConnection;
import liquibase.diff.compare.CompareControl;
import liquibase.resource.DirectoryResourceAccessor;
import liquibase.snapshot.SnapshotControl;
import liquibase.snapshot.SnapshotGeneratorFactory;
import liquibase.structure.core.ForeignKey;
import liquibase.structure.core.Index;
import liquibase.structure.core.Table;

public final class WithLiquibase {
    static final String LOG = """
        databaseChangeLog:
        - changeSet:
            id: 1
            author: a
            changes:
            - createTable:
                tableName: author
                remarks: Who writes
                columns:
                - column: {name: id, type: bigint, autoIncrement: true, constraints: {primaryKey: true}}
                - column: {name: name, type: varchar(50), constraints: {nullable: false, unique: true}}
                - column: {name: born, type: timestamp, defaultValueComputed: CURRENT_TIMESTAMP}
                - column: {name: dear, type: boolean, defaultValueBoolean: false}
            - createTable:
                tableName: book
                columns:
                - column: {name: id, type: int, constraints: {primaryKey: true}}
                - column: {name: author_id, type: bigint}
                - column: {name: price, type: 'decimal(8, 2)'}
        - changeSet:
            id: 2
            author: a
            preConditions:
            - onFail: MARK_RAN
            - tableExists: {tableName: book}
            - not: [{columnExists: {tableName: book, columnName: title}}]
            changes:
            - addForeignKeyConstraint: {baseTableName: book, baseColumnNames: author_id, referencedTableName: author, referencedColumnNames: id, constraintName: book_author, onDelete: CASCADE}
            - createIndex: {tableName: book, indexName: by_price, columns: [{column: {name: price}}]}
            - addColumn: {tableName: book, columns: [{column: {name: title, type: clob}}]}
            - createSequence: {sequenceName: numbers, startValue: 10}
        - changeSet:
            id: 3
            author: a
            changes:
            - insert: {tableName: author, columns: [{column: {name: name, value: Ann}}]}
            - renameColumn: {tableName: book, oldColumnName: title, newColumnName: called}
            - addNotNullConstraint: {tableName: book, columnName: called, defaultNullValue: none}
            - modifyDataType: {tableName: book, columnName: price, newDataType: 'decimal(10, 2)'}
            - createView: {viewName: names, selectQuery: SELECT name FROM author}
            rollback:
            - dropView: {viewName: names}
        """;

    public static void main(String[] arguments) throws Exception {
        System.setProperty("liquibase.analytics.enabled", "false");
        Checks.begin(liquibase.util.LiquibaseUtil.getBuildVersion());
        Path folder = Files.createTempDirectory("liquibase");
        Files.writeString(folder.resolve("log.yaml"), LOG);
        Database database = DatabaseFactory.getInstance().findCorrectDatabaseImplementation(new JdbcConnection(Checks.connect("")));
        Liquibase liquibase = new Liquibase("log.yaml", new DirectoryResourceAccessor(folder), database);
        Contexts all = new Contexts();
        Checks.check("updates", () -> {
            liquibase.update(all);
            Checks.same(liquibase.listUnrunChangeSets(all, new LabelExpression()).size(), 0);
        });
        Checks.check("nothing_to_do", () -> liquibase.update(all));
        Checks.check("rows", () -> {
            try (var db = Checks.connect("")) { Checks.same(WithPgjdbc.one(db, "SELECT id || name FROM author JOIN names USING (name)"), "1Ann"); }
        });
        Checks.check("locks", () -> {
            Checks.same(liquibase.listLocks().length, 0);
            liquibase.forceReleaseLocks();
        });
        Checks.check("tag", () -> {
            liquibase.tag("here");
            Checks.same(liquibase.tagExists("here"), true);
        });
        Checks.check("validates", liquibase::validate);
        Checks.check("snapshot", () -> {
            var found = SnapshotGeneratorFactory.getInstance().createSnapshot(database.getDefaultSchema(), database, new SnapshotControl(database));
            Checks.same(found.get(Table.class).stream().map(Table::getName).sorted().toList(), List.of("author", "book", "databasechangelog", "databasechangeloglock"));
            Checks.same(found.get(ForeignKey.class).stream().map(k -> k.getName() + k.getDeleteRule()).toList(), List.of("book_authorimportedKeyCascade"));
            Checks.same(found.get(Index.class).stream().map(Index::getName).toList().contains("by_price"), true);
        });
        Checks.check("difference", () -> {
            var found = liquibase.diff(database, database, CompareControl.STANDARD);
            Checks.same(found.areEqual(), true);
        });
        Checks.check("rolls_back", () -> {
            liquibase.rollback(1, "");
            liquibase.update(all);
        });
        Checks.check("drops_all", () -> {
            liquibase.dropAll();
            try (var db = Checks.connect("")) {
                Checks.same(WithPgjdbc.one(db, "SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace"), "0");
            }
        });
        System.exit(0);
    }
}
