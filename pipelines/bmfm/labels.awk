# Barcodes and types of simulated cells -> a table of barcode and term of data/blood-cells.obo. Every type stands for a leaf. Every third cell is
# labelled by a term above it, as cells of an atlas are: the loss of an ontology learns from these too.
BEGIN {
	FS = OFS = "\t"
	split("CL:0000624 CL:0000625 CL:0000860 CL:0000236 CL:0000623 CL:0000875 CL:0000990 CL:0000784", leaf, " ")
	split("CL:0000084 CL:0000084 CL:0000576 CL:0000542 CL:0000542 CL:0000576 CL:0000451 CL:0000451", above, " ")
	print "barcode", "term"
}
NR > 1 {
	sub(/^type/, "", $2)
	print $1, NR % 3 ? leaf[$2] : above[$2]
}
