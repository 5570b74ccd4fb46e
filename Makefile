# The jobs are in make.py, which does not need make.
PYTHON ?= python3

.PHONY: report test lint bench clean
report test lint bench clean:
	@$(PYTHON) make.py $@
