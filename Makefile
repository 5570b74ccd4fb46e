# The jobs live in make.py, which needs no make.
PYTHON ?= python3

.PHONY: report test lint bench clean
report test lint bench clean:
	@$(PYTHON) make.py $@
