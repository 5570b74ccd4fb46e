"""What the evidence means: standing, blame, sentences, waivers and the exit code."""
