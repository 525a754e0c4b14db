package local

// change is a put or a delete, as it is staged, logged and applied.
type change struct {
	put    *batch
	delete []string
}

// batch is a put in columns.
type batch struct {
	sequence                             []uint64
	id, label, hash, context, text, meta []string
	vectors                              []float32 // normalised, one after another
}

func (p *batch) add(r row, label string, vector []float32) {
	p.sequence = append(p.sequence, r.sequence)
	p.id = append(p.id, r.id)
	p.label = append(p.label, label)
	p.hash = append(p.hash, r.hash)
	p.context = append(p.context, r.context)
	p.text = append(p.text, r.text)
	p.meta = append(p.meta, r.meta)
	p.vectors = append(p.vectors, vector...)
}

// row is an entry without its label and its vector.
type row struct {
	sequence                  uint64
	id                        string // empty: a hole
	hash, context, text, meta string // meta: encoded
	label                     uint32 // in a table's dictionary
}

// size is what a row takes in a log.
func (r *row) size(label string, dimension int) int64 {
	const sequenceAndLengths = 8 + 6*4
	return int64(sequenceAndLengths + len(r.id) + len(label) + len(r.hash) + len(r.context) + len(r.text) + len(r.meta) + 4*dimension)
}
