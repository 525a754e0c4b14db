package row

const (
	// MaxRows bounds the rows of a collection, deleted ones counted until they are
	// merged away.
	MaxRows = 1<<31 - 1<<16
	// MaxDimension bounds the dimension of vectors.
	MaxDimension = 1 << 16
)

// Row is an entry without its vector; meta is encoded.
type Row struct {
	Sequence                             uint64
	ID, Label, Hash, Context, Text, Meta string
}

// Columns are the strings of a row, in the order in which a put has them.
func (r *Row) Columns() [6]*string {
	return [6]*string{&r.ID, &r.Label, &r.Hash, &r.Context, &r.Text, &r.Meta}
}

// Size is what a row takes in a log, in bytes.
func (r *Row) Size(dimension int) int64 {
	n := 8 + 4*dimension
	for _, column := range r.Columns() {
		n += 4 + len(*column)
	}
	return int64(n)
}

// Batch is the rows of a put.
type Batch struct {
	Rows    []Row
	Vectors []float32 // normalised, one after another
}

// Change is a put or a delete, as it is staged, logged and applied.
type Change struct {
	Put    *Batch
	Delete []string
}
