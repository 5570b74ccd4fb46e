# README's two commands, each as a target:
#   docker build --target report --tag reshape-conformance . && docker run --rm reshape-conformance
#   docker build --target test --tag reshape-tests . && docker run --rm reshape-tests
FROM python:3-slim AS installed
RUN useradd --create-home suite && install --directory --owner=suite /suite
USER suite
WORKDIR /suite
COPY --chown=suite . .
# This makes .venv, so that the containers need no network.
RUN python3 make.py test --version

FROM installed AS test
CMD ["python3", "make.py", "test"]

# The last target is the one that is built without --target.
FROM installed AS report
CMD ["python3", "make.py", "report"]
