"""Verdicts on a whole run: standings, blame, sentences, waivers and the exit code."""
