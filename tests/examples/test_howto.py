"""The how-to page about counters: a counter moves to a queue under load."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psycopg
import pytest
from examples.test_switching import KEYS, WRITERS, Load, counting, growing
from support.needs import require
from support.orm import django_on
from support.queues import combine_all, one, values
from support.readme import PAGES, fences
from support.servers import embedded_only
from support.sessions import workers

(COUNTERS,) = (page for page in PAGES if page.name == "counters.md")


def statements(page: Path) -> list[list[str]]:
    """The statements of each SQL fence of a page."""
    return [[part.strip() for part in re.sub(r"(?m)--.*$", "", block).split(";")[:-1]] for block in fences(page, "sql")]


def test_a_counter_moves_under_load(conn: psycopg.Connection, dsn: str) -> None:
    """Writers change to the new release one after the other. The column is emptied while other writers still use it.

    No view is lost or counted twice.
    """
    before, (make_queue,), (read_both,), (append,), (empty,), (read_queue, drop_column) = statements(COUNTERS)
    table, _, old = before
    conn.execute(table.encode())
    conn.execute("insert into post select i, 1000 * i from generate_series(1, %s) i", (KEYS,))
    read = partial(growing, seen=[0])
    load = Load(dsn, counting(old), read("select id, views from post where id = 1"))
    with load.running():
        load.go_on()
        conn.execute(make_queue.encode())
        with workers(dsn, "post_views"):
            load.look = read(read_both)
            for writer in range(WRITERS):
                load.go_on()
                load.writes[writer] = counting(append)
                assert conn.execute(empty.encode()).rowcount > 0
            load.go_on()
            conn.execute(empty.encode())
            assert one(conn, "select sum(views) from post") == 0
            load.look = read(read_queue.replace("order by", "where p.id = 1 order by"))
            load.go_on()
            conn.execute(drop_column.encode())
            load.go_on()
    combine_all(conn, "post_views")
    expected = {post: 1000 * post + load.totals.get(post, 0) for post in range(1, KEYS + 1)}
    assert values(conn, "post_views") == expected


@pytest.fixture
def blog(conn: psycopg.Connection) -> psycopg.Connection:
    """A database in which the column of the page's table has the views. The queue exists, and is empty."""
    before, (make_queue,), *_ = statements(COUNTERS)
    for statement in (*before, make_queue):
        conn.execute(statement.encode())
    return conn


@embedded_only
def test_django_counts_in_the_queue(blog: psycopg.Connection) -> None:
    _, fence, _ = fences(COUNTERS, "python")
    names: dict[str, Any] = {"__name__": "blog"}
    with django_on(blog):
        exec(compile(fence, COUNTERS.name, "exec"), names)
        assert names["views_of"](1) == 42
        names["count_view"](1)
        assert names["views_of"](1) == 43


PROJECT = {
    "blog/__init__.py": "",
    "blog/migrations/__init__.py": "",
    "blog/migrations/0001_initial.py": """
from django.db import migrations, models

class Migration(migrations.Migration):
    operations = [
        migrations.CreateModel(
            "Post",
            [("id", models.BigAutoField(primary_key=True)), ("views", models.BigIntegerField(default=0))],
            {"db_table": "post"},
        )
    ]
""",
    "blog/migrations/0003_more.py": """
from django.db import migrations
import pgcombine.django

class Migration(migrations.Migration):
    dependencies = [("blog", "0002_post_views")]
    operations = [
        pgcombine.django.create_queue("all_views", key=["one int"], value=["n bigint sum"], buckets=2),
        pgcombine.django.create_tier("last_digits", source="post_views", key=["post % 10 as digit"]),
        pgcombine.django.create_rollup("posts", source="post", key=["views % 2 as odd"], value=["count(*) as n"],
            keep="views < 9"),
        migrations.RunSQL("create table seen (post bigint, n bigint)", "drop table seen"),
        pgcombine.django.add_observer("post_views", "seen", "insert into seen select post, new_n from changes"),
    ]
""",
    "blog/migrations/0004_again.py": """
from datetime import timedelta
from django.db import migrations
from pgcombine import django

class Migration(migrations.Migration):
    dependencies = [("blog", "0003_more")]
    operations = [
        django.create_tier("odd_views", source="post_views", key=["post % 2 as odd"]),
        django.rebucket("all_views", 4),
        django.grant_right("read", "pg_monitor", "post_views", "all_views"),
        django.create_feed("views", "all_views", retention=timedelta(days=1)),
        django.add_observer("all_views", "told", None),
        django.undo(django.add_observer("all_views", "told", None)),
        django.undo(django.create_feed("views", "all_views", retention=timedelta(days=1))),
        django.undo(django.create_tier("odd_views", source="post_views", key=["post % 2 as odd"])),
    ]
""",
    "manage.py": """
import sys
from django.core.management import execute_from_command_line
execute_from_command_line(sys.argv)
""",
    "blog/tests.py": """
from django.db import Error, connection, transaction
from django.test import TestCase
from blog.models import Post, QueueTestCase, count_view, views_of

def rows(statement):
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchall() if cursor.description else None

class RolledBack(TestCase):
    def count(self):
        Post.objects.create(pk=1)
        self.assertEqual(views_of(1), 0)
        count_view(1)
        self.assertEqual(views_of(1), 1)
        with self.assertRaises(Error), transaction.atomic():
            rows("call pgcombine.drain('post_views')")
        self.assertEqual(rows("select * from pgcombine.post_views_values"), [])
        self.assertEqual(rows("select n from pgcombine.posts"), [(1,)])
    test_first = test_second = count

class Committed(QueueTestCase):
    def count(self):
        Post.objects.create(pk=1)
        count_view(1)
        rows("call pgcombine.drain('post_views')")
        self.assertEqual(rows("select post, n from pgcombine.post_views_values"), [(1, 1)])
        self.assertEqual(views_of(1), 1)
        self.assertEqual(rows("select * from seen"), [(1, 1)])
        rows("call pgcombine.drain('last_digits')")
        rows("call pgcombine.drain('posts')")
        self.assertEqual(rows("select * from pgcombine.last_digits_values"), [(1, 1)])
        self.assertEqual(rows("select odd, n from pgcombine.posts"), [(0, 1)])
        rows("insert into pgcombine.all_views_updates values (1, 1)")
        rows("call pgcombine.drain('all_views')")
        self.assertEqual(rows("select * from pgcombine.all_views_values"), [(1, 1)])
        rows("truncate seen")
    test_first = test_second = count

class Alone(Committed):
    pass
""",
}


@embedded_only
def test_django_tests_in_a_database_of_its_own(empty_dsn: str, tmp_path: Path) -> None:
    """``manage.py`` migrates forth and back and finds a missing upgrade. ``manage.py test`` runs in parallel.

    Tests of both kinds find empty queues.
    """
    require("Django", there=find_spec("django"))
    migration, models, case = fences(COUNTERS, "python")
    with psycopg.connect(empty_dsn) as conn:
        database = {"ENGINE": "django.db.backends.postgresql", "NAME": conn.info.dbname, "HOST": conn.info.host}
        database |= {"PORT": conn.info.port, "USER": conn.info.user, "PASSWORD": conn.info.password}
    settings = f"DATABASES = {{'default': {database}}}\nINSTALLED_APPS = ['blog', 'pgcombine.django']\nUSE_TZ = True\n"
    files = {
        **PROJECT,
        "blog/migrations/0002_post_views.py": migration,
        "blog/models.py": f"{models}\n{case}",
        "settings.py": settings,
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")

    def manage(*command: str) -> str:
        done = subprocess.run(
            [sys.executable, "-W", "error", "manage.py", *command],
            cwd=tmp_path,
            env={**os.environ, "DJANGO_SETTINGS_MODULE": "settings"},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stderr

    assert "Ran 6 tests" in manage("test", "--noinput", "--parallel", "2")
    assert "(pgcombine.W001)" in manage("check", "--database", "default")
    assert "W00" not in manage("migrate"), "the check runs before the schema is made"
    assert "W00" not in manage("check", "--database", "default")
    with psycopg.connect(empty_dsn, autocommit=True) as conn:
        made = (
            "select jsonb_object_agg(queue, buckets), (select count(feed) from pgcombine.change_log),"
            " (select string_agg(observer, ' ') from pgcombine.observer where observer !~ '^(pgcombine|tier)'),"
            " (select count(*) from pgcombine.rights) from pgcombine.queue"
        )
        queues = {"all_views": 4, "last_digits": 1, "post_views": 1, "posts": 1}
        assert conn.execute(made).fetchone() == (queues, 0, "seen", 2)
        # reversed, the last three operations make the feed, the observer and the tier again, and the others drop them
        manage("migrate", "blog", "0003")
        assert conn.execute(made).fetchone() == (queues, 0, "seen", 0)
        manage("migrate")
        conn.execute("update pgcombine.schema_version set digest = 'older'")
        assert "(pgcombine.W002)" in manage("check", "--database", "default")
        assert "W00" not in manage("migrate", "blog", "0001")
        assert one(conn, "select count(*) from pgcombine.queue") == 0
    assert "W00" not in manage("check", "--database", "default")
