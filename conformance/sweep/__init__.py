"""Every call of a bounded domain: what it means, what a backend answers, and what fails by rule."""
