# An SVG file as a part of a page: no declarations, names of its own (prefix), a title and a description instead of gnuplot's.
# The styles of the page replace black, white and the grey of grids, so figures follow its colours.
{
	if (!begun) {
		if (!/<svg/) next
		begun = 1
		sub(/.*<svg/, "<svg role=\"img\"")
		open = 1
	}
	gsub(/ ?xmlns(:[a-z]+)?="[^"]*"/, "")
	gsub(/ id="/, "&" prefix)
	gsub(/ id='/, "&" prefix)
	gsub(/href='#/, "&" prefix)
	gsub(/href="#/, "&" prefix)
	gsub(/url\(#/, "&" prefix)
	gsub(/>Gnuplot<\/title>/, ">" html(title) "</title>")
	sub(/<desc>Produced by GNUPLOT[^<]*<\/desc>/, "<desc>" html(title) "</desc>")
	if (open && />/) { open = 0; sub(/>/, " aria-label=\"" html(title) "\">") }
	print
}
