"""A hook of mkdocs: the pages of the site lie where they lie in the repository, so that links between them hold."""

from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
PAGES = ("*.md", "docs/*.md", "docs/*.png", "*/README.md", "LICENSE", "reports/*.html", "reports/*/report.html")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Return the files of PAGES, and those of the theme."""
    for file in list(files.documentation_pages()) + list(files.media_files()):
        files.remove(file)
    for pattern in PAGES:
        for path in sorted(ROOT.glob(pattern)):
            files.append(File(str(path.relative_to(ROOT)), str(ROOT), config.site_dir, config.use_directory_urls))
    return files
