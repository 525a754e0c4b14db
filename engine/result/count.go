package result

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"io"
	"os"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/racflow/racflow/engine/result/columnar"
)

// Count returns how many results a file holds that was written in a format, also where it
// was not completed and the format allows that. It fails where the file is of another kind.
func Count(path, format, compression string) (n int64, err error) {
	if format == Parquet {
		return columnar.Rows(path)
	}
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	in := io.Reader(f)
	switch compression {
	case GZ:
		in, err = gzip.NewReader(f)
	case ZST:
		var z *zstd.Decoder
		if z, err = zstd.NewReader(f, zstd.WithDecoderConcurrency(1)); err == nil {
			defer z.Close()
			in = z
		}
	}
	if err != nil {
		return 0, err
	}
	if format == CSV {
		n, err = countRecords(in)
	} else {
		n, err = countLines(in)
	}
	if format == CSV || format == TSV {
		n = max(n-1, 0) // the header
	}
	return n, err
}

func countRecords(in io.Reader) (n int64, err error) {
	records := csv.NewReader(bufio.NewReaderSize(in, 256<<10))
	records.FieldsPerRecord, records.LazyQuotes, records.ReuseRecord = -1, true, true
	for {
		if _, err := records.Read(); errors.Is(err, io.EOF) {
			return n, nil
		} else if err != nil {
			return n, err
		}
		n++
	}
}

func countLines(in io.Reader) (n int64, err error) {
	buffer := make([]byte, 256<<10)
	last := byte('\n')
	for {
		read, err := in.Read(buffer)
		n += int64(bytes.Count(buffer[:read], []byte("\n")))
		if read > 0 {
			last = buffer[read-1]
		}
		switch {
		case errors.Is(err, io.EOF) && last != '\n':
			return n + 1, nil
		case errors.Is(err, io.EOF):
			return n, nil
		case err != nil:
			return n, err
		}
	}
}
