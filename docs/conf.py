# The web site: `make site` (docs/docs.mk) copies the pages to build/site/pages and calls Sphinx on them.
project = "corrmask"
author = "the corrmask authors"
copyright = "2026, the corrmask authors"
extensions = ["myst_parser"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
root_doc = "index"
html_theme = "furo"
html_title = "corrmask"
html_static_path = ["_static"]
html_css_files = ["site.css"]
exclude_patterns = ["examples/skill"] # a file for agents, no page
html_show_sphinx = False
html_copy_source = False
html_theme_options = {"sidebar_hide_name": False}
# blocks of commands are shell, outlines are text, and neither is an error of the page
highlight_language = "sh"
suppress_warnings = ["misc.highlighting_failure"]
