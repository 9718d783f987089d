// What the parts in Java share: a check is a method; its result is one line, `ok NAME` or `no NAME: why`.
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.SQLException;
import java.util.Objects;
import java.util.logging.Level;
import java.util.logging.Logger;

final class Checks {
    static final String URL = "jdbc:postgresql://" + System.getenv("PGHOST") + ":" + System.getenv("PGPORT") + "/" + System.getenv("PGDATABASE");
    static final String USER = System.getenv("PGUSER");

    interface Work {
        void run() throws Exception;
    }

    static void begin(String version) {
        Logger.getLogger("").setLevel(Level.SEVERE);
        System.out.println("version " + version);
    }

    static void check(String name, Work work) {
        try {
            work.run();
            System.out.println("ok " + name);
        } catch (Throwable e) {
            if (System.getenv("VERBOSE") != null) e.printStackTrace();
            String why = (e.getMessage() == null ? e.toString() : e.getMessage()).replaceAll("\\s+", " ");
            System.out.println("no " + name + ": " + why.substring(0, Math.min(300, why.length())));
        }
    }

    static void same(Object found, Object wanted) {
        if (!Objects.deepEquals(found, wanted)) throw new AssertionError(found + " instead of " + wanted);
    }

    /** Fails unless the work fails with this SQLSTATE, itself or by its cause. */
    static SQLException fails(String code, Work work) throws Exception {
        try {
            work.run();
        } catch (Exception e) {
            for (Throwable cause = e; cause != null; cause = cause.getCause()) {
                if (cause instanceof SQLException found && found.getSQLState() != null) {
                    same(found.getSQLState(), code);
                    return found;
                }
            }
            throw e;
        }
        throw new AssertionError(code + " expected");
    }

    static Connection connect(String options) throws SQLException {
        return DriverManager.getConnection(URL + options, USER, "");
    }
}
