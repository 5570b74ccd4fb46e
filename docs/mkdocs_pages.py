"""A hook of mkdocs: the pages of the site lie where they lie in the repository, so that links between them hold."""

from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
PAGES = ("*.md", "docs/*.md", "*/README.md")
OTHERS = ("docs/*.png", "LICENSE", "Dockerfile", "reports/*.html", "reports/*/report.html")
"""Files that pages link to."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Return the files of the theme, and those of the repository that belong to the site."""
    for file in list(files):
        if file.src_dir == config.docs_dir:
            files.remove(file)
    for pattern in (*PAGES, *OTHERS):
        for path in sorted(ROOT.glob(pattern)):
            files.append(File(str(path.relative_to(ROOT)), str(ROOT), config.site_dir, config.use_directory_urls))
    return files
