package attached

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"iter"
	"os"

	"google.golang.org/protobuf/proto"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/proto/stagepb"
	"github.com/racflow/racflow/sdk/wire"
)

// A file of rows is pages of entries, one after the other: the length of a page in bytes as
// four, lowest first, and the page as entries travel between processes.

// rowsWriter writes a file of rows.
type rowsWriter struct {
	file *os.File
	to   *bufio.Writer
	hash hash.Hash
	size int64
}

func newRowsWriter(f *os.File) *rowsWriter {
	w := &rowsWriter{file: f, hash: sha256.New()}
	w.to = bufio.NewWriterSize(io.MultiWriter(f, w.hash), 1<<20)
	return w
}

func (w *rowsWriter) write(page []sdk.Entry) error {
	rows, err := wire.EncodeEntries(page)
	if err != nil {
		return err
	}
	encoded, err := proto.Marshal(rows)
	if err != nil {
		return err
	}
	if err = binary.Write(w.to, binary.LittleEndian, uint32(len(encoded))); err == nil {
		_, err = w.to.Write(encoded)
	}
	w.size += 4 + int64(len(encoded))
	return err
}

// end returns the digest of the file.
func (w *rowsWriter) end() (digest string, err error) {
	if err := w.to.Flush(); err != nil {
		return "", err
	}
	return hex.EncodeToString(w.hash.Sum(nil)), nil
}

// digestOf is the digest of a file of rows.
func digestOf(f io.ReaderAt, size int64) (string, error) {
	h := sha256.New()
	if _, err := io.Copy(h, io.NewSectionReader(f, 0, size)); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// readPages yields the pages of a file of rows, from a place on. An error is the last.
func readPages(f io.ReaderAt, from, size int64) iter.Seq2[[]sdk.Entry, error] {
	return func(yield func([]sdk.Entry, error) bool) {
		r := bufio.NewReaderSize(io.NewSectionReader(f, from, size-from), 1<<20)
		for {
			page, err := readPage(r, size)
			if err == io.EOF || !yield(page, err) || err != nil {
				return
			}
		}
	}
}

// readPage reads a page that is at most so long; io.EOF after the last one.
func readPage(r io.Reader, most int64) ([]sdk.Entry, error) {
	var length uint32
	if err := binary.Read(r, binary.LittleEndian, &length); err != nil {
		return nil, err
	}
	if int64(length) > most {
		return nil, fmt.Errorf("a page of %d bytes in a file of %d", length, most)
	}
	encoded := make([]byte, length)
	if _, err := io.ReadFull(r, encoded); err != nil {
		return nil, fmt.Errorf("read a page: %w", err)
	}
	rows := &stagepb.Rows{}
	if err := proto.Unmarshal(encoded, rows); err != nil {
		return nil, fmt.Errorf("read a page: %w", err)
	}
	return wire.DecodeEntries(rows, int(rows.GetN()))
}
