package local

// change is a put or a delete, as it is staged, logged and applied.
type change struct {
	put    *batch
	delete []string
}

// batch is the rows of a put.
type batch struct {
	rows    []row
	vectors []float32 // normalised, one after another
}

// columns are the strings of a row, in the order in which a put has them.
func (r *row) columns() [6]*string {
	return [6]*string{&r.id, &r.label, &r.hash, &r.context, &r.text, &r.meta}
}
