"""Django: migrations (its own and one of an app), models and relations, auth, sessions, the admin's pages."""
import datetime
import os
import pathlib
import sys
import tempfile

import django
from django.conf import settings

from checks import check, fails, run, same

# An app in a folder of its own, for makemigrations writes into it.
folder = tempfile.TemporaryDirectory()
app = pathlib.Path(folder.name, "shop")
app.mkdir()
(app / "__init__.py").write_text("")
MODELS = """
from django.db import models


class Author(models.Model):
    name = models.CharField(max_length=100, unique=True)
    born = models.DateField(null=True)

    def __str__(self):
        return self.name


class Tag(models.Model):
    slug = models.SlugField()


class Book(models.Model):
    author = models.ForeignKey(Author, on_delete=models.CASCADE, related_name="books")
    tags = models.ManyToManyField(Tag)
    title = models.CharField(max_length=200, db_index=True)
    price = models.DecimalField(max_digits=8, decimal_places=2)
    meta = models.JSONField(default=dict)
    added = models.DateTimeField(auto_now_add=True)
    stock = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["author", "title"], name="one_title"),
            models.CheckConstraint(**{CHECK: models.Q(price__gte=0)}, name="a_price"),
        ]
        ordering = ["title"]
"""
CHECK = '"condition"' if django.VERSION >= (5, 1) else '"check"'
(app / "models.py").write_text(MODELS.replace("CHECK", CHECK))
(app / "admin.py").write_text(
    "from django.contrib import admin\nfrom shop.models import Author, Book\n"
    "@admin.register(Book)\nclass BookAdmin(admin.ModelAdmin):\n"
    "    list_display = ['title', 'author', 'price']\n    list_filter = ['author']\n    search_fields = ['title']\n"
    "    date_hierarchy = 'added'\n"
    "admin.site.register(Author)\n"
)
(app / "urls.py").write_text("from django.contrib import admin\nfrom django.urls import path\nurlpatterns = [path('admin/', admin.site.urls)]\n")
sys.path.insert(0, folder.name)
settings.configure(
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends.postgresql", "NAME": os.environ["PGDATABASE"], "USER": os.environ["PGUSER"],
            "HOST": os.environ["PGHOST"], "PORT": os.environ["PGPORT"],
        }
    },
    INSTALLED_APPS=[
        "django.contrib.admin", "django.contrib.auth", "django.contrib.contenttypes", "django.contrib.sessions",
        "django.contrib.messages", "django.contrib.postgres", "shop",
    ],
    MIDDLEWARE=[
        "django.contrib.sessions.middleware.SessionMiddleware", "django.contrib.auth.middleware.AuthenticationMiddleware",
        "django.contrib.messages.middleware.MessageMiddleware",
    ],
    TEMPLATES=[
        {
            "BACKEND": "django.template.backends.django.DjangoTemplates", "APP_DIRS": True,
            "OPTIONS": {
                "context_processors": [
                    "django.template.context_processors.request", "django.contrib.auth.context_processors.auth",
                    "django.contrib.messages.context_processors.messages",
                ]
            },
        }
    ],
    ROOT_URLCONF="shop.urls", SECRET_KEY="of a test", USE_TZ=True, ALLOWED_HOSTS=["*"], STATIC_URL="/static/",
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField", PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"],
)
django.setup()

from django.contrib.auth import authenticate  # noqa: E402
from django.contrib.auth.models import Group, Permission, User  # noqa: E402
from django.contrib.contenttypes.models import ContentType  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.db import DataError, IntegrityError, connection, models, transaction  # noqa: E402
from django.db.models import Avg, Count, Exists, F, OuterRef, Q, Subquery, Sum, Value, Window  # noqa: E402
from django.db.models.functions import Coalesce, Concat, Lower, Rank, TruncMonth  # noqa: E402
from django.test import Client  # noqa: E402

from shop.models import Author, Book, Tag  # noqa: E402


@check
def migrate():
    call_command("makemigrations", "shop", verbosity=0)
    call_command("migrate", verbosity=0)
    same(len(connection.introspection.table_names()), 14)


@check
def rows_and_relations():
    ann, bob = Author.objects.create(name="Ann", born=datetime.date(1970, 1, 2)), Author.objects.create(name="Bob")
    for n in range(5):
        book = Book.objects.create(author=ann, title=f"A{n}", price=f"{n}.50", meta={"pages": n, "in": {"x": [n]}})
        book.tags.add(Tag.objects.create(slug=f"t{n}"))
    Book.objects.create(author=bob, title="B%", price=7)
    same([b.title for b in ann.books.all()], ["A0", "A1", "A2", "A3", "A4"])
    same(Book.objects.select_related("author").get(title="A1").author.born, datetime.date(1970, 1, 2))
    same(len(Book.objects.prefetch_related("tags").filter(tags__slug__startswith="t")), 5)
    same(list(Author.objects.filter(books__tags__slug="t3").values_list("name", flat=True)), ["Ann"])


@check
def lookups():
    same(Book.objects.filter(title__contains="%").count(), 1)
    same(Book.objects.filter(title__icontains="a").count(), 5)
    same(Book.objects.filter(title__iexact="a1").count(), 1)
    same(Book.objects.filter(title__regex=r"^A[0-2]$").count(), 3)
    same(Book.objects.filter(title__in=["A1", "A2"], price__range=(1, 2)).count(), 1)
    same(Book.objects.filter(~Q(author__name="Ann") | Q(price__lt=1)).count(), 2)
    same(Book.objects.filter(added__year__gte=2020).count(), 6)
    same(Book.objects.filter(author__born__isnull=True).exists(), True)
    same([b.title for b in Book.objects.order_by(F("author__born").desc(nulls_last=True), "-title")[:2]], ["A4", "A3"])


@check
def json_fields():
    same(Book.objects.get(meta__pages=3).title, "A3")
    same(Book.objects.filter(meta__in__x__0=2).count(), 1)
    same(Book.objects.filter(meta__has_key="pages").count(), 5)
    same(Book.objects.filter(meta__contains={"pages": 1}).count(), 1)
    same(Book.objects.filter(meta__pages__gt=2).count(), 2)


@check
def aggregates():
    same(Book.objects.aggregate(n=Count("id"), s=Sum("price"))["n"], 6)
    found = Author.objects.annotate(n=Count("books"), mean=Avg("books__price")).order_by("-n").values_list("name", "n")
    same(list(found), [("Ann", 5), ("Bob", 1)])
    same(list(Author.objects.annotate(n=Count("books")).filter(n__gt=1).values_list("name", flat=True)), ["Ann"])
    same(len(Book.objects.annotate(m=TruncMonth("added")).values("m").annotate(n=Count("id")).order_by("m")), 1)


@check
def expressions():
    Book.objects.filter(title="A1").update(price=F("price") * 2, stock=F("stock") + 1)
    same(str(Book.objects.get(title="A1").price), "3.00")
    same(Book.objects.annotate(x=Concat(Lower("title"), Value("-"), "author__name")).first().x, "a0-Ann")
    ranked = Book.objects.annotate(r=Window(Rank(), partition_by=["author"], order_by=F("price").desc()))
    same(sorted(b.r for b in ranked), [1, 1, 2, 3, 4, 5])
    same(Author.objects.annotate(c=Coalesce("born", datetime.date(2000, 1, 1))).get(name="Bob").c, datetime.date(2000, 1, 1))


@check
def subqueries():
    dear = Book.objects.filter(author=OuterRef("pk"), price__gt=5)
    same(list(Author.objects.filter(Exists(dear)).values_list("name", flat=True)), ["Bob"])
    same([a.e for a in Author.objects.annotate(e=Exists(dear)).order_by("name")], [False, True])
    last = Book.objects.filter(author=OuterRef("pk")).order_by("-price").values("title")[:1]
    same([a.b for a in Author.objects.annotate(b=Subquery(last)).order_by("name")], ["A4", "B%"])


@check
def distinct_union_values():
    same(len(Book.objects.order_by("author", "title").distinct("author")), 2)
    one, two = Book.objects.filter(title="A1").values("id").order_by(), Book.objects.filter(title="A2").values("id").order_by()
    same(one.union(two).count(), 2)
    same(len(Book.objects.dates("added", "year")), 1)


@check
def bulk():
    made = Author.objects.bulk_create([Author(name=f"n{n}") for n in range(500)])
    assert all(a.pk for a in made), "bulk_create tells the keys"
    for a in made:
        a.born = datetime.date(2000, 1, 1)
    same(Author.objects.bulk_update(made, ["born"], batch_size=200) in (None, 500), True)
    same(Author.objects.filter(born=datetime.date(2000, 1, 1)).count(), 500)
    Author.objects.bulk_create([Author(name="n1"), Author(name="new")], ignore_conflicts=True)
    same(Author.objects.filter(name__startswith="n").count(), 501)
    same(Author.objects.filter(name__startswith="n").delete()[0], 501)


@check
def bulk_upsert():
    if django.VERSION < (4, 1):
        return
    Author.objects.bulk_create(
        [Author(name="Bob", born=datetime.date(1999, 9, 9))], update_conflicts=True, unique_fields=["name"], update_fields=["born"]
    )
    same(Author.objects.get(name="Bob").born, datetime.date(1999, 9, 9))


@check
def get_or_create():
    same(Author.objects.get_or_create(name="Ann")[1], False)
    same(Author.objects.update_or_create(name="Cy", defaults={"born": None})[1], True)
    Author.objects.get(name="Cy").delete()


@check
def transactions():
    try:
        with transaction.atomic():
            Author.objects.create(name="gone")
            try:
                with transaction.atomic():
                    Author.objects.create(name="Ann")
            except IntegrityError:
                pass
            same(Author.objects.filter(name="gone").count(), 1)
            raise KeyError
    except KeyError:
        pass
    same(Author.objects.filter(name="gone").count(), 0)


@check
def select_for_update():
    with transaction.atomic():
        same(Author.objects.select_for_update().get(name="Ann").name, "Ann")
        same(len(Author.objects.select_for_update(skip_locked=True)), 2)
        same(Author.objects.select_for_update(no_key=True, nowait=True).count(), 2)


@check
def select_for_update_of_a_join():
    with transaction.atomic():
        same(len(Book.objects.select_related("author").select_for_update(of=("self",))), 6)


@check
def errors():
    def create(**values):
        with transaction.atomic():
            Book.objects.create(**values)

    ann = Author.objects.get(name="Ann")
    fails(IntegrityError, lambda: create(author=ann, title="A1", price=1))
    fails(IntegrityError, lambda: create(author=ann, title="x", price=-1))
    fails(DataError, lambda: create(author=ann, title="x" * 201, price=1))
    # A foreign key of Django's is deferred to the end of the transaction.
    fails(IntegrityError, lambda: create(author_id=10**6, title="y", price=1))


@check
def iterator():
    same(sum(1 for _ in Book.objects.iterator(chunk_size=2)), 6)


@check
def auth():
    user = User.objects.create_superuser("root", "root@example.org", "secret")
    group = Group.objects.create(name="staff")
    group.permissions.add(Permission.objects.get(codename="add_book", content_type=ContentType.objects.get_for_model(Book)))
    user.groups.add(group)
    same(authenticate(username="root", password="secret"), user)
    same(User.objects.filter(groups__permissions__codename="add_book").count(), 1)


@check
def admin_pages():
    client = Client()
    assert client.login(username="root", password="secret"), "logs in, with a session in the database"
    for page in ("", "shop/book/", "shop/book/?q=A1", "shop/book/?author__id__exact=1", "auth/user/", "shop/book/add/"):
        same((page, client.get(f"/admin/{page}").status_code), (page, 200))
    values = {"name": "Dee", "born": "2001-02-03"}
    same(client.post("/admin/shop/author/add/", values).status_code, 302)
    dee = Author.objects.get(name="Dee")
    same(client.post(f"/admin/shop/author/{dee.pk}/delete/", {"post": "yes"}).status_code, 302)
    same(client.get("/admin/").status_code, 200)


def migrated(text, *moves):
    """Carries a migration with these operations out."""
    from django.db.migrations.executor import MigrationExecutor
    from django.db.migrations.migration import Migration

    executor = MigrationExecutor(connection)
    state = executor.loader.project_state()
    migration = Migration(text, "shop")
    migration.operations = list(moves)
    with connection.schema_editor(atomic=True) as editor:
        return migration.apply(state, editor)


@check
def migration_adds_and_renames():
    from django.db import migrations as m

    migrated("add", m.AddField("Author", "email", models.EmailField(default="", max_length=100)))
    migrated("index", m.AddIndex("Author", models.Index(fields=["name", "-born"], name="by_name")))
    with connection.cursor() as c:
        found = connection.introspection.get_constraints(c, "shop_author")["by_name"]
    same((found["columns"], found["orders"]), (["name", "born"], ["ASC", "DESC"]))


@check
def migration_partial_index():
    from django.db import migrations as m

    migrated("partial", m.AddConstraint("Author", models.UniqueConstraint(
        fields=["born"], condition=models.Q(name__gt="zz"), name="born_once")))


@check
def migration_alters_a_type():
    from django.db import migrations as m

    migrated("alter", m.AlterField("Book", "stock", models.BigIntegerField(default=0)))
    migrated("longer", m.AlterField("Author", "name", models.CharField(max_length=200, unique=True)))
    migrated("text", m.AlterField("Book", "title", models.TextField()))


@check
def array_fields():
    from django.contrib.postgres.fields import ArrayField
    from django.db import migrations as m

    state = migrated("array", m.CreateModel("Bag", [
        ("id", models.BigAutoField(primary_key=True)), ("things", ArrayField(models.IntegerField()))]))
    bags = state.apps.get_model("shop", "Bag").objects
    bags.create(things=[1, 2, 3])
    same(bags.filter(things__contains=[2]).count(), 1)
    same(bags.get(things__0=1).things, [1, 2, 3])


@check
def durations_and_times():
    from django.db import migrations as m

    state = migrated("times", m.CreateModel("Span", [
        ("id", models.BigAutoField(primary_key=True)), ("long", models.DurationField()), ("at", models.TimeField())]))
    spans = state.apps.get_model("shop", "Span").objects
    spans.create(long=datetime.timedelta(hours=30), at=datetime.time(12, 30))
    same(spans.filter(long__gt=datetime.timedelta(days=1)).count(), 1)
    same(spans.get().at, datetime.time(12, 30))


@check
def inspectdb():
    import io

    out = io.StringIO()
    call_command("inspectdb", stdout=out)
    text = out.getvalue()
    assert "models.ForeignKey('ShopAuthor'" in text or "models.ForeignKey(ShopAuthor" in text, text
    assert "unable to inspect" not in text.lower(), text[text.lower().index("unable to inspect"):][:200]


@check
def flush():
    call_command("flush", interactive=False, verbosity=0)
    same((Author.objects.count(), User.objects.count()), (0, 0))


def tidy():
    if connection.in_atomic_block or connection.needs_rollback:
        connection.close()


run(django.get_version(), after=tidy)
