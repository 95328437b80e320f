"""The types that the scripts of the console and of the other pages tell of in comments, as TypeScript checks them."""

import json
import os
import pathlib
import shutil
import subprocess

import run

SOURCES = run.HERE.parent.parent / "svc-http/src"
OPTIONS = {"allowJs": True, "checkJs": True, "noEmit": True, "skipLibCheck": True, "target": "ES2022", "lib": ["ES2023", "DOM", "DOM.Iterable"], "types": []}
# What each of the other pages runs, joined in this order.
JOINED = (("approval_words.js", "approval_texts.js", "approval_matter.js", "approval.js"), ("sign_in.js",))


def home():
    return pathlib.Path(os.environ["SVC_NODE_HOME"])


def check(folder, options, **files):
    (folder / "tsconfig.json").write_text(json.dumps({"compilerOptions": OPTIONS | options} | files))
    checked = [run.node(20), home() / "node_modules/typescript/bin/tsc", "-p", folder / "tsconfig.json"]
    done = subprocess.run(checked, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_sources_have_sound_types():
    """What the comments say of types holds: the published types of what is vendored take the place of its files."""
    sources = home() / "console"
    shutil.rmtree(sources, ignore_errors=True)
    shutil.copytree(SOURCES / "console", sources, ignore=shutil.ignore_patterns("preact.js", "hooks.js", "htm.js"))
    (sources / "preact.d.ts").write_text('export * from "preact";\n')
    (sources / "hooks.d.ts").write_text('export * from "preact/hooks";\n')
    (sources / "htm.d.ts").write_text('export { default } from "htm";\n')
    check(sources, {"strict": True, "module": "ES2022", "moduleResolution": "bundler"}, include=["*.js"])


def test_the_pages_have_sound_types():
    """Scripts of pages, which are no modules and say few types, have none that cannot be, and name nothing that is not there."""
    pages = home() / "pages"
    shutil.rmtree(pages, ignore_errors=True)
    shutil.copytree(SOURCES / "pages", pages, ignore=shutil.ignore_patterns("*.rs"))
    named = {name for names in JOINED for name in names}
    assert named == {path.name for path in pages.glob("*.js")}, "each script is a page's"
    for files in JOINED:
        check(pages, {"strict": False}, files=list(files))
