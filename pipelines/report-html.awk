# What the awk scripts of the page share. awk -f report-html.awk -f ...

function html(s) { gsub(/&/, "\\&amp;", s); gsub(/</, "\\&lt;", s); gsub(/>/, "\\&gt;", s); gsub(/"/, "\\&quot;", s); gsub(/'/, "\\&#39;", s); return s }

function is_number(s) { return s ~ /^[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?$/ }

# A table cell. A long number is shown with four digits; the attribute has all of them.
function cell(s,  short) {
	if (!is_number(s))
		return s ~ /^(NA|nan|-nan|inf|-inf|)$/ ? "<td class=\"n\">" html(s) "</td>" : "<td>" html(s) "</td>"
	short = s
	if (length(s) > 7 && s ~ /[.e]/)
		short = s >= 1000 || s <= -1000 ? sprintf("%.1f", s) : sprintf("%.4g", s)
	return "<td class=\"n\">" (short == s ? s : "<data value=\"" s "\">" short "</data>") "</td>"
}
function head_cell(s) { return "<th scope=\"col\"><button type=\"button\">" html(s) "</button></th>" }
function table_start(caption, fields, n,  i, line) {
	line = "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"" html(caption) "\"><table><caption>" html(caption) "</caption><thead><tr>"
	for (i = 1; i <= n; i++)
		line = line head_cell(fields[i])
	print line "</tr></thead><tbody>"
}
function table_end() { print "</tbody></table></div>" }

# Colours that people with any colour vision tell apart [Okabe and Ito 2008], without black and the yellow, which a page hides.
# A class has a colour and, from the ninth on, another mark; figures also write its number.
BEGIN { colours = split("#0072b2 #e69f00 #009e73 #d55e00 #56b4e9 #cc79a7 #8a8a8a #a89a00", colour_list, " ") }
function colour(i) { return colour_list[(i - 1) % colours + 1] }

function svg_start(w, h, title, text) {
	printf "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"12\">\n", w, h, w, h
	print "<title>" html(title) "</title>\n<desc>" html(text) "</desc>"
}
