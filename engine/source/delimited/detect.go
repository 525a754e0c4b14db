package delimited

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"github.com/racflow/racflow/engine/source/lines"
)

// looked is how many records of the beginning of a file are looked at.
const looked = 100

// Detect finds out how the fields of a file are separated by how it begins, which is cut
// after a whole line if there is more of it. The first of the candidates is expected: another
// takes its place only where it cuts the first line into several fields, and most of the
// others into as many, and the expected one does not.
func Detect(head []byte, end byte, candidates ...Style) Style {
	best, most := candidates[0], 0.0
	for i, c := range candidates {
		fields, share := consistent(head, end, c)
		switch {
		case fields < 2:
		case i == 0 && share >= 0.8:
			return c
		case share >= 0.5 && share+float64(min(fields, 100))/1e4 > most:
			best, most = c, share+float64(min(fields, 100))/1e4
		}
	}
	return best
}

// consistent is how many fields the first record has, and the share of records that have as
// many.
func consistent(head []byte, end byte, s Style) (fields int, share float64) {
	r := New(lines.New(bufio.NewReader(bytes.NewReader(head)), end), s)
	first, err := r.Next()
	if err != nil || first.Err != nil {
		return 0, 0
	}
	fields = len(first.Fields)
	same, all := 1, 1
	for all < looked {
		record, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if all++; err == nil && record.Err == nil && len(record.Fields) == fields {
			same++
		}
	}
	return fields, float64(same) / float64(all)
}
