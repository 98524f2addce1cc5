# The figures of docs/ from the tables beside them, and the web site.

.PHONY: docs-figures site
docs-figures: ## draw the figures of docs from their tables (fig3.svg is of make fig3)
	@for f in bmfm-ontology fig4 forest genes-map network panel r2mae-cells r2mae-other reliance; do \
		python3 -B pipelines/page/figure.py docs-$$f docs/experiments/tables > docs/experiments/$$f.svg || exit 1; done
	@for f in loaders speed; do python3 -B pipelines/page/figure.py docs-$$f docs > docs/$$f.svg || exit 1; done

# docs/gallery: the reports of make demo on PBMC 3k (PBMC3K=, docs/experiments/data.md; ten minutes on two cores) and of make annotate without files,
# and the map of the latter. What was trained is kept in $(BUILD)/gallery. The names of folders say nothing to readers.
GALLERY := $(BUILD)/gallery
gallery_make = mkdir -p $(GALLERY) && cd $(GALLERY) && env -u MAKEFLAGS make -s -f $(CURDIR)/pipelines/Makefile BIN=$(abspath $(BIN))
gallery_report = sed 's\#$(abspath $(GALLERY))/\#\#g; s\#$(CURDIR)/data/\#\#g' $(GALLERY)/results/$1/latest/report.html
.PHONY: docs-gallery docs-gallery-annotate
docs-gallery: docs-gallery-annotate ## make docs/gallery, examples of reports (PBMC3K=pbmc3k_10x.h5ad)
	@[ -f "$(PBMC3K)" ] || { echo 'make docs-gallery: PBMC3K= is needed, the file of PBMC 3k' >&2; exit 2; }
	@cmp -s "$(PBMC3K)" $(GALLERY)/pbmc3k_10x.h5ad || cp "$(PBMC3K)" $(GALLERY)/pbmc3k_10x.h5ad
	$(gallery_make) demo DATA=pbmc3k_10x.h5ad LABEL=cell_type GENES=800 MAXLEN=128 CELLS=0 EPOCHS=15 SEEDS="1 2 3"
	$(call gallery_report,demo) > docs/gallery/pbmc3k.html
docs-gallery-annotate: all
	rm -rf $(GALLERY)/results/annotate
	$(gallery_make) annotate
	$(call gallery_report,annotate) > docs/gallery/annotate.html
	python3 -B pipelines/page/figure.py --of docs/gallery/annotate.html 'Map of the new cells: Assigned types' > docs/gallery/annotate-map.svg

# The pages keep their places, but docs/ is the top. So ../ of a page in docs/ and docs/ of a page above it go.
SITE  := $(BUILD)/site
SITE_PYTHON := /usr/bin/python3
PAGES_ABOVE := CONTRIBUTING.md SECURITY.md CHANGELOG.md
site: $(MAN)/made ## build the web site in build/site/html (make deps site)
	@$(SITE_PYTHON) -c 'import sphinx, myst_parser, furo' 2>/dev/null || { echo 'make site: no Sphinx, MyST or furo for python3. make deps site installs them' >&2; exit 1; }
	@rm -rf $(SITE)
	@mkdir -p $(SITE)/pages/man $(SITE)/pages/_static
	@cp -r docs/*.md docs/*.svg docs/*.tsv docs/conf.py docs/experiments docs/guide docs/gallery $(SITE)/pages
	@cp -r examples $(SITE)/pages
	@cp docs/site.css $(SITE)/pages/_static
	@for p in $(PAGES_ABOVE); do sed 's#](docs/#](#g' $$p > $(SITE)/pages/$$p || exit 1; done
	@sed -i -E 's#\]\(\.\./([A-Z]+\.md|examples/)#](\1#g' $(SITE)/pages/*.md
	@sed -i -E 's#\]\(\.\./\.\./(man|examples)/#](../\1/#g' $(SITE)/pages/guide/*.md
	@cd $(MAN) && for p in *.[1-9]; do { printf '# %s(%s)\n\n```{raw} html\n' "$${p%.*}" "$${p##*.}"; \
		mandoc -T html -O 'fragment,toc,man=%N.%S.html;https://manpages.debian.org/%N.%S' $$p && printf '```\n'; } > "$(abspath $(SITE))/pages/man/$$p.md" || exit 1; done
	@{ printf '# Manual pages\n\n'; for p in $(PAGES:%=$(MAN)/%); do n=$${p##*/}; \
		printf -- '- [%s(%s)](%s.md): %s\n' "$${n%.*}" "$${n##*.}" "$$n" "$$(sed -n 's/^\.Nd //p' $$p)"; done; \
		printf '\n```{toctree}\n:hidden:\n:glob:\n\n*\n```\n'; } > $(SITE)/pages/man/index.md
	@python3 -B man/pages.py --reference $(BIN) > $(SITE)/pages/reference.md
	@$(SITE_PYTHON) -m sphinx -q -n -W --keep-going -b html $(SITE)/pages $(SITE)/html
	@mkdir -p $(SITE)/html/gallery && cp docs/gallery/*.html $(SITE)/html/gallery
# Debian's furo knows the dark colours, but not that the reader's system asks for them.
	@css=$(SITE)/html/_static/styles/furo.css; grep -q prefers-color-scheme $$css || { \
		echo '@media (prefers-color-scheme: dark) { body[data-theme="auto"] {'; \
		awk '/^  body\[data-theme="dark"\] \{$$/ { on = 1; next } on { print } /\}/ { if (on) exit }' $$css; echo '}'; } >> $(SITE)/html/_static/site.css
	@$(SITE_PYTHON) tests/site_links.py $(SITE)/html
