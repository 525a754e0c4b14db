package rows

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// Limits of a Parquet file. Typical pages have about a megabyte and 20,000 values.
const (
	maxFooter   = 64 << 20  // bytes
	maxPage     = 256 << 20 // unpacked bytes of a page
	freePage    = 8 << 20   // the size of a larger page must be in proportion to its packed bytes
	maxValues   = 64 << 20  // values of a page
	freeValues  = 2 << 20   // the number of more values must be in proportion to the page's bytes
	maxPerByte  = 100       // rows for each byte of the file
	freeRows    = 200_000   // maxPerByte applies to a file with more rows
	damaged     = "the file is damaged or made to do damage: %s; write it once more"
	headerBytes = 1 << 20 // of a page, including its statistics
)

// checkFooter refuses a file that does not end like a Parquet file.
func checkFooter(in io.ReaderAt, size int64) error {
	var end [8]byte
	if size < 12 {
		return errors.New("the file is too short to be Parquet: get it once more")
	}
	if _, err := in.ReadAt(end[:], size-8); err != nil {
		return err
	}
	if magic := string(end[4:]); magic == "PARE" {
		return errors.New("the file is encrypted: write it without encryption")
	} else if magic != "PAR1" {
		return errors.New("the file is cut off, or no Parquet: it does not end as such a file does; get it once more")
	}
	if n := int64(binary.LittleEndian.Uint32(end[:4])); n > maxFooter || n > size-12 {
		return fmt.Errorf(damaged, fmt.Sprintf("its footer is said to have %d bytes", n))
	}
	return nil
}

// checkPages refuses a file whose pages claim impossible sizes: the library allocates the memory
// that they claim.
func checkPages(in io.ReaderAt, file *parquet.File) error {
	if rows := file.NumRows(); rows < 0 || rows > freeRows && rows/maxPerByte > file.Size() {
		return fmt.Errorf(damaged, fmt.Sprintf("%d bytes are said to hold %d rows", file.Size(), rows))
	}
	read := bufio.NewReaderSize(nil, 4<<10)
	for _, group := range file.Metadata().RowGroups {
		for _, c := range group.Columns {
			m := c.MetaData
			at := m.DataPageOffset
			if d := m.DictionaryPageOffset; d > 0 && d < at {
				at = d
			}
			end := at + m.TotalCompressedSize
			if at < 4 || end < at || end > file.Size() || m.NumValues < 0 {
				return fmt.Errorf(damaged, "a column is said to lie outside of it")
			}
			if err := checkColumn(in, at, end, read); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkColumn checks the header of each page between two offsets.
func checkColumn(in io.ReaderAt, at, end int64, read *bufio.Reader) error {
	for at < end {
		section := &counting{in: io.NewSectionReader(in, at, min(end-at, headerBytes))}
		read.Reset(section)
		var h format.PageHeader
		if err := thrift.NewDecoder(new(thrift.CompactProtocol).NewReader(read)).Decode(&h); err != nil {
			return fmt.Errorf(damaged, fmt.Sprintf("a page has no header (%v)", err))
		}
		at += section.n - int64(read.Buffered()) + int64(h.CompressedPageSize)
		values := max(h.DataPageHeader.V.NumValues, h.DataPageHeaderV2.V.NumValues, h.DictionaryPageHeader.V.NumValues, h.DataPageHeaderV2.V.NumRows)
		if h.CompressedPageSize < 0 || at > end || h.UncompressedPageSize < 0 || tooMuch(h.UncompressedPageSize, h.CompressedPageSize, freePage, maxPage) || tooMuch(values, h.CompressedPageSize, freeValues, maxValues) {
			return fmt.Errorf(damaged, fmt.Sprintf("a page of %d bytes is said to hold %d, and %d values", h.CompressedPageSize, h.UncompressedPageSize, values))
		}
	}
	return nil
}

// tooMuch reports whether a page claims more than most or, above free, more than its bytes can
// hold.
func tooMuch(said, bytes, free, most int32) bool {
	return said > most || said > free && said/maxPerByte/10 > bytes
}

// counting counts the bytes read.
type counting struct {
	in io.Reader
	n  int64
}

func (c *counting) Read(p []byte) (int, error) {
	n, err := c.in.Read(p)
	c.n += int64(n)
	return n, err
}

// Parquet reads the rows of a Parquet file.
type Parquet struct {
	names  []string
	means  []meaning
	rows   *parquet.GenericReader[any]
	batch  []any
	have   []any // rest of the batch, not returned yet
	ended  error // error after the batch
	n      int
	values []any
}

// batchSize is how many rows one read returns.
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

// Columns returns the names of the columns.
func (p *Parquet) Columns() []string { return p.names }

// Row returns the number of rows returned so far.
func (p *Parquet) Row() int { return p.n }

// Next returns the values of the next row, valid until the next call: strings, json.Number, bool,
// nil, and json.RawMessage for nested values. It ends with io.EOF.
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

// Close closes the reader.
func (p *Parquet) Close() (err error) {
	defer recovered(&err)
	return p.rows.Close()
}

// recovered turns a panic into the error of a damaged file.
func recovered(err *error) {
	if why := recover(); why != nil {
		*err = fmt.Errorf("the file is damaged: reading it came to %q; write it once more", fmt.Sprint(why))
	}
}
