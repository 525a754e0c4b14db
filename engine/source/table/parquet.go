package table

import (
	"errors"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"
)

// Parquet reads the rows of a Parquet file.
type Parquet struct {
	names  []string
	means  []meaning
	rows   *parquet.GenericReader[any]
	batch  []any
	have   []any // of the batch, not returned yet
	ended  error // after them
	n      int
	values []any
}

// batchSize is how many rows are read at a time.
const batchSize = 64

// OpenParquet opens a file of a size in bytes.
func OpenParquet(in io.ReaderAt, size int64) (p *Parquet, err error) {
	defer recovered(&err)
	if err := checkFooter(in, size); err != nil {
		return nil, err
	}
	file, err := parquet.OpenFile(in, size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true), parquet.ReadBufferSize(256<<10))
	if err != nil {
		return nil, fmt.Errorf("it is no Parquet file that can be read (%w): write it once more", err)
	}
	if err := checkPages(in, file); err != nil {
		return nil, err
	}
	p = &Parquet{batch: make([]any, batchSize)}
	classes := classesOf(file)
	for _, c := range file.Root().Columns() {
		m := meaningOf(c)
		m.classes = classes[c.Name()]
		p.names, p.means = append(p.names, c.Name()), append(p.means, m)
	}
	if len(p.names) == 0 {
		return nil, errors.New("the file has no columns")
	}
	p.values = make([]any, len(p.names))
	p.rows = parquet.NewGenericReader[any](file)
	return p, nil
}

// Columns are the names of the columns.
func (p *Parquet) Columns() []string { return p.names }

// Row is how many rows have been returned.
func (p *Parquet) Row() int { return p.n }

// Next returns the values of the next row, which are valid until the next call: strings,
// json.Number, bool, nil, and json.RawMessage of what is nested. It ends with io.EOF.
func (p *Parquet) Next() (values []any, err error) {
	defer recovered(&err)
	for len(p.have) == 0 {
		if p.ended != nil {
			return nil, p.ended
		}
		clear(p.batch)
		n, err := p.rows.Read(p.batch)
		if p.have = p.batch[:n]; err != nil && !errors.Is(err, io.EOF) {
			err = fmt.Errorf("the file is damaged after row %d: %w; write it once more", p.n+n, err)
		} else if err == nil && n == 0 {
			err = io.EOF
		}
		p.ended = err
	}
	row, _ := p.have[0].(map[string]any)
	p.have = p.have[1:]
	p.n++
	for i, name := range p.names {
		p.values[i] = p.means[i].valueOf(row[name])
	}
	return p.values, nil
}

// Close ends reading.
func (p *Parquet) Close() (err error) {
	defer recovered(&err)
	return p.rows.Close()
}
