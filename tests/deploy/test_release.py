"""``.ci/release`` builds the files of a release, and each of them works on a bare server or a bare machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
from support.needs import images
from support.readme import ROOT

from pgcombine import schema
from pgcombine.embedded import programs

FILES = {"-py3-none-any.whl", ".tar.gz", ".sql", "-image.tar.gz"}


def call(*command: str | Path, cwd: Path, **env: str) -> str:
    done = subprocess.run(
        [*map(str, command)], cwd=cwd, env=os.environ | env, capture_output=True, text=True, timeout=500, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a release that is built from a clone with the checkout's files."""
    clone = tmp_path_factory.mktemp("clone")
    listed = call("git", "-c", "safe.directory=*", "ls-files", "--cached", "--others", "--exclude-standard", cwd=ROOT)
    for name in filter(os.path.isfile, (ROOT / line for line in listed.splitlines())):
        to = clone / name.relative_to(ROOT)
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(name, to)
    git = ("git", "-c", "user.name=test", "-c", "user.email=test@localhost")
    call(*git, "init", "-q", cwd=clone)
    call(*git, "add", "--all", cwd=clone)
    call(*git, "commit", "-q", "-m", "All files", cwd=clone)
    made = tmp_path_factory.mktemp("release")
    base = images()["PGCOMBINE_TEST_PYTHON_IMAGE"]
    call(clone / ".ci" / "release", made, cwd=clone, PYTHON=sys.executable, PYTHON_IMAGE=base)
    return made


@pytest.mark.docker
@pytest.mark.slow
def test_files_of_a_release_work(release: Path, empty_dsn: str) -> None:
    (wheel,) = release.glob("*.whl")
    version = wheel.name.split("-")[1]
    assert {path.name for path in release.iterdir()} == {f"pgcombine-{version}{end}" for end in FILES} | {
        "NOTES.md",
        "SHA256SUMS",
    }
    call("sha256sum", "--check", "--strict", "SHA256SUMS", cwd=release)
    assert (release / "NOTES.md").read_text("utf-8") == f"# pgcombine {version}\n\n- All files\n"

    # without Python: psql installs, counts as pg_cron's job does, and upgrades
    def psql(*options: str) -> str:
        return call(
            programs.find().path("psql"), "-XqAt", "-v", "ON_ERROR_STOP=1", "-d", empty_dsn, *options, cwd=release
        )

    file = f"pgcombine-{version}.sql"
    assert (release / file).read_text("utf-8") == schema.upgrade_sql()
    psql("-f", file)
    psql("-c", "select pgcombine.create_queue('views', key => array['page text'], value => array['n bigint sum'])")
    psql("-c", "insert into pgcombine.views_updates (page, n) values ('/', 1), ('/', 1)")
    psql("-c", "call pgcombine.drain('views')")
    psql("-f", file)
    assert psql("-c", "select * from pgcombine.views_values") == "/|2\n"

    image = f"pgcombine:{version}"
    try:
        call("docker", "load", "--input", f"pgcombine-{version}-image.tar.gz", cwd=release)
        assert version in call("docker", "run", "--rm", "--no-healthcheck", image, "--version", cwd=release)
    finally:
        subprocess.run(["docker", "image", "rm", "--force", image], capture_output=True, check=False)
    with psycopg.connect(empty_dsn) as conn:
        assert conn.execute("select pgcombine.backlog('views')").fetchone() == (0,)
