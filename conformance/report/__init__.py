"""Results turned into something to read: pages, JUnit, Markdown, badges."""
