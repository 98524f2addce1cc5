# The figures of docs/ from the tables beside them, and the web site.

.PHONY: docs-figures site deps-site
docs-figures: ## draw the figures of docs/experiments from its tables
	pipelines/docs-figures.sh

# docs/gallery/pbmc3k.html, the report of make demo on PBMC 3k. PBMC3K is the file of PBMC 3k (docs/experiments/data.md). Ten minutes on two cores; what
# was trained is kept in $(BUILD)/gallery. The name of that folder says nothing to readers.
GALLERY := $(BUILD)/gallery
.PHONY: docs-gallery
docs-gallery: all ## make docs/gallery/pbmc3k.html, an example of a report (PBMC3K=pbmc3k_10x.h5ad)
	@[ -f "$(PBMC3K)" ] || { echo 'make docs-gallery: PBMC3K= is needed, the file of PBMC 3k' >&2; exit 2; }
	@mkdir -p $(GALLERY)
	@cmp -s "$(PBMC3K)" $(GALLERY)/pbmc3k_10x.h5ad || cp "$(PBMC3K)" $(GALLERY)/pbmc3k_10x.h5ad
	cd $(GALLERY) && env -u MAKEFLAGS make -s -f $(CURDIR)/pipelines/Makefile BIN=$(abspath $(BIN)) demo DATA=pbmc3k_10x.h5ad LABEL=cell_type GENES=800 \
		MAXLEN=128 CELLS=0 EPOCHS=15 SEEDS="1 2 3"
	sed 's#$(abspath $(GALLERY))/##g' $(GALLERY)/results/demo/latest/report.html > docs/gallery/pbmc3k.html

DEPS_SITE := python3-sphinx python3-myst-parser furo mandoc
deps-site: ## install the Debian packages for the web site
	$(SUDO) apt-get update && $(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $(DEPS_SITE)

# The pages keep their places, but docs/ is the top. So ../ of a page in docs/ and docs/ of a page above it go.
SITE  := $(BUILD)/site
SITE_PYTHON := /usr/bin/python3
PAGES_ABOVE := CONTRIBUTING.md SECURITY.md CHANGELOG.md
site: ## build the web site in build/site/html (needs the packages of make deps-site)
	@$(SITE_PYTHON) -c 'import sphinx, myst_parser, furo' 2>/dev/null || { echo 'make site: no Sphinx, MyST or furo for python3. make deps-site installs them' >&2; exit 1; }
	@rm -rf $(SITE)
	@mkdir -p $(SITE)/pages/man $(SITE)/pages/_static
	@cp -r docs/*.md docs/*.svg docs/*.tsv docs/conf.py docs/experiments docs/guide docs/gallery $(SITE)/pages
	@cp -r examples $(SITE)/pages
	@cp docs/site.css $(SITE)/pages/_static
	@for p in $(PAGES_ABOVE); do sed 's#](docs/#](#g' $$p > $(SITE)/pages/$$p || exit 1; done
	@sed -i -E 's#\]\(\.\./([A-Z]+\.md|examples/)#](\1#g' $(SITE)/pages/*.md
	@sed -i -E 's#\]\(\.\./\.\./(man|examples)/#](../\1/#g' $(SITE)/pages/guide/*.md
	@cd man && for p in *.[1-9]; do { printf '# %s(%s)\n\n```{raw} html\n' "$${p%.*}" "$${p##*.}"; \
		mandoc -T html -O 'fragment,toc,man=%N.%S.html;https://manpages.debian.org/%N.%S' $$p && printf '```\n'; } > "$(abspath $(SITE))/pages/man/$$p.md" || exit 1; done
	@{ printf '# Manual pages\n\n'; for p in man/*.[1-9]; do n=$${p##*/}; \
		printf -- '- [%s(%s)](%s.md): %s\n' "$${n%.*}" "$${n##*.}" "$$n" "$$(sed -n 's/^\.Nd //p' $$p)"; done; \
		printf '\n```{toctree}\n:hidden:\n:glob:\n\n*\n```\n'; } > $(SITE)/pages/man/index.md
	@$(SITE_PYTHON) -m sphinx -q -n -W --keep-going -b html $(SITE)/pages $(SITE)/html
	@mkdir -p $(SITE)/html/gallery && cp docs/gallery/*.html $(SITE)/html/gallery
# Debian's furo knows the dark colours, but not that the reader's system asks for them.
	@css=$(SITE)/html/_static/styles/furo.css; grep -q prefers-color-scheme $$css || { \
		echo '@media (prefers-color-scheme: dark) { body[data-theme="auto"] {'; \
		awk '/^  body\[data-theme="dark"\] \{$$/ { on = 1; next } on { print } /\}/ { if (on) exit }' $$css; echo '}'; } >> $(SITE)/html/_static/site.css
	@$(SITE_PYTHON) tests/site_links.py $(SITE)/html
