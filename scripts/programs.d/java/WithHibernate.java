// Hibernate: the schema from entities, relations, HQL, criteria, locks, versions, batches, native SQL, validation.
import jakarta.persistence.*;
import java.math.BigDecimal;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import org.hibernate.SessionFactory;
import org.hibernate.annotations.JdbcTypeCode;
import org.hibernate.cfg.Configuration;
import org.hibernate.type.SqlTypes;

public final class WithHibernate {
    enum Mood { SAD, OK }

    @Entity(name = "Author")
    static class Author {
        @Id @GeneratedValue(strategy = GenerationType.SEQUENCE) Long id;
        @Column(nullable = false, unique = true, length = 50) String name;
        @Version int version;
        @OneToMany(mappedBy = "author", cascade = CascadeType.ALL, orphanRemoval = true) List<Book> books = new ArrayList<>();

        Author() {}

        Author(String name) { this.name = name; }

        void write(String title, String price) {
            Book book = new Book();
            book.author = this;
            book.title = title;
            book.price = new BigDecimal(price);
            books.add(book);
        }
    }

    @Entity(name = "Book")
    @Table(indexes = @Index(name = "by_price", columnList = "price, title"))
    static class Book {
        @Id @GeneratedValue(strategy = GenerationType.IDENTITY) Long id;
        @ManyToOne(optional = false, fetch = FetchType.LAZY) Author author;
        String title;
        @Column(precision = 8, scale = 2) BigDecimal price;
        @Enumerated(EnumType.STRING) Mood mood = Mood.OK;
        UUID code = new UUID(1, 2);
        Instant at = Instant.ofEpochSecond(1709208000);
        byte[] bytes = {0, -1};
        @JdbcTypeCode(SqlTypes.JSON) List<String> json = List.of("a");
        int[] numbers = {1, 2};
        @ElementCollection List<String> tags = new ArrayList<>(List.of("x", "y"));
    }

    public static void main(String[] arguments) {
        Checks.begin(org.hibernate.Version.getVersionString());
        SessionFactory[] made = new SessionFactory[1];
        Checks.check("creates_the_schema", () -> made[0] = factory("create"));
        SessionFactory factory = made[0];
        if (factory == null) return;
        Checks.check("rows", () -> factory.inTransaction(s -> {
            Author ann = new Author("Ann");
            ann.write("A", "1.50");
            ann.write("B", "2");
            s.persist(ann);
            for (int n = 0; n < 100; n++) s.persist(new Author("author " + n));
        }));
        Checks.check("reads", () -> factory.inTransaction(s -> {
            Book book = s.createQuery("from Book b join fetch b.author where b.title = :t", Book.class).setParameter("t", "A").getSingleResult();
            Checks.same(List.of(book.author.name, book.price, book.mood, book.code, book.at, book.json, List.copyOf(book.tags)),
                List.of("Ann", new BigDecimal("1.50"), Mood.OK, new UUID(1, 2), Instant.ofEpochSecond(1709208000), List.of("a"), List.of("x", "y")));
            Checks.same(book.bytes, new byte[] {0, -1});
            Checks.same(book.numbers, new int[] {1, 2});
        }));
        Checks.check("queries", () -> factory.inTransaction(s -> {
            Checks.same(s.createQuery("select count(*), sum(b.price), max(size(b.tags)) from Book b", Object[].class).getSingleResult()[0], 2L);
            Checks.same(s.createQuery("select a.name from Author a where exists (from Book b where b.author = a and b.price > 1) order by a.name", String.class)
                .getResultList(), List.of("Ann"));
            Checks.same(s.createQuery("from Author order by id", Author.class).setFirstResult(10).setMaxResults(5).getResultList().size(), 5);
            Checks.same(s.createQuery("select year(b.at), upper(b.title) || '!', coalesce(b.mood, 'SAD') from Book b where b.title like 'A%' escape '\\'",
                Object[].class).getResultList().size(), 1);
            Checks.same(s.createQuery("select rank() over (partition by b.author order by b.price desc) from Book b order by 1", Long.class).getResultList(), List.of(1L, 2L));
            Checks.same(s.createQuery("with t as (select b.title as x from Book b) select u.x from t u union all select a.name from Author a where a.id < 2 ",
                String.class).getResultList().stream().sorted().toList(), List.of("A", "Ann", "B"));
        }));
        Checks.check("criteria", () -> factory.inTransaction(s -> {
            var build = s.getCriteriaBuilder();
            var query = build.createQuery(Book.class);
            var book = query.from(Book.class);
            query.where(build.and(build.greaterThan(book.get("price"), new BigDecimal(1)), book.get("title").in("A", "C")));
            Checks.same(s.createQuery(query).getResultList().size(), 1);
        }));
        Checks.check("locks", () -> factory.inTransaction(s -> {
            Author ann = s.createQuery("from Author where name = 'Ann'", Author.class).setLockMode(LockModeType.PESSIMISTIC_WRITE).getSingleResult();
            s.refresh(ann, LockModeType.PESSIMISTIC_READ);
            s.lock(ann, LockModeType.PESSIMISTIC_FORCE_INCREMENT);
        }));
        Checks.check("stale_version", () -> {
            Author old = factory.fromTransaction(s -> s.find(Author.class, 2L));
            factory.inTransaction(s -> s.find(Author.class, 2L).name = "changed");
            old.name = "late";
            try {
                factory.inTransaction(s -> s.merge(old));
                throw new AssertionError("a stale version is written");
            } catch (OptimisticLockException expected) {
                return;
            }
        });
        Checks.check("changes", () -> factory.inTransaction(s -> {
            Checks.same(s.createMutationQuery("update Book set price = price + 1 where title = 'A'").executeUpdate(), 1);
            Checks.same(s.createMutationQuery("delete from Author a where a.name like 'author 9%'").executeUpdate(), 11);
            Checks.same(s.createMutationQuery("insert into Author (id, name, version) select a.id + 10000, a.name || 'x', 0 from Author a where a.name = 'Ann'").executeUpdate(), 1);
            Checks.same(s.createMutationQuery("insert into Author (id, name, version) values (77777, 'Annx', 0) on conflict (name) do update set version = 5").executeUpdate(), 1);
        }));
        Checks.check("native_queries", () -> factory.inTransaction(s ->
            Checks.same(s.createNativeQuery("SELECT * FROM Book WHERE id = :id", Book.class).setParameter("id", 1).getSingleResult().title, "A")));
        Checks.check("removes", () -> factory.inTransaction(s -> {
            Author ann = s.createQuery("from Author where name = 'Ann'", Author.class).getSingleResult();
            ann.books.remove(0);
            s.flush();
            s.remove(ann);
        }));
        Checks.check("errors", () -> Checks.fails("23505", () -> factory.inTransaction(s -> {
            s.persist(new Author("twice"));
            s.persist(new Author("twice"));
        })));
        Checks.check("validates_the_schema", () -> factory("validate").close());
        Checks.check("updates_the_schema", () -> factory("update").close());
        Checks.check("drops_the_schema", () -> {
            factory.getSchemaManager().drop(false);
            try (var db = Checks.connect("")) {
                Checks.same(WithPgjdbc.one(db, "SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace"), "0");
            }
        });
        factory.close();
    }

    static SessionFactory factory(String schema) {
        return new Configuration().addAnnotatedClass(Author.class).addAnnotatedClass(Book.class)
            .setProperty("hibernate.connection.url", Checks.URL).setProperty("hibernate.connection.username", Checks.USER)
            .setProperty("hibernate.connection.password", "").setProperty("hibernate.hbm2ddl.auto", schema)
            .setProperty("hibernate.hbm2ddl.halt_on_error", "true")
            .setProperty("hibernate.jdbc.batch_size", "20").setProperty("hibernate.order_inserts", "true").buildSessionFactory();
    }
}
