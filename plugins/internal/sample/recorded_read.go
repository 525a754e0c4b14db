package sample

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	// recordedMaxLine is the greatest length of a line in bytes: a result of a run holds the item's text, of at most
	// 1 MiB, and its votes.
	recordedMaxLine = 8 << 20
	// maxErrors is how many invalid lines are reported.
	maxErrors = 10
)

// recordedRow is one answer as written in the file.
type recordedRow struct {
	id, voter, answer, weight string
	none                      bool // an empty answer that votes for no label
}

// file holds the state of reading a file.
type file struct {
	recordedConfig
	answers map[string][]recordedAnswer // by item
	count   int
	labels  map[string]string // each label's text, stored once
	others  map[string]bool   // voters that are not read
	digest  string
}

// parser reads the rows of a line.
type parser func(line []byte) ([]recordedRow, error)

func read(c recordedConfig) (*file, error) {
	in, err := os.Open(string(c.Path))
	if err != nil {
		return nil, err
	}
	defer in.Close() //nolint:errcheck // nothing was written
	f := &file{recordedConfig: c, answers: map[string][]recordedAnswer{}, labels: map[string]string{}, others: map[string]bool{}}
	digest := sha256.New()
	if err := f.lines(io.TeeReader(in, digest)); err != nil {
		return nil, err
	}
	f.digest = fmt.Sprintf("%x", digest.Sum(nil))
	if f.count == 0 && len(f.others) > 0 {
		return nil, fmt.Errorf("%s holds no answer of a voter %q; it has those of %s. Write voter = \"...\" in config",
			c.Path, c.Voter, strings.Join(some(slices.Sorted(maps.Keys(f.others))), ", "))
	}
	return f, nil
}

func (f *file) lines(in io.Reader) error {
	var parse parser
	switch ext := strings.ToLower(filepath.Ext(string(f.Path))); ext {
	case ".jsonl", ".ndjson":
		parse = f.object
	case ".csv":
		return fmt.Errorf("%s: answers are read from TSV or JSONL, not CSV", f.Path)
	}
	var errs []error
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 64<<10), recordedMaxLine)
	n := 0
	for lines.Scan() {
		n++
		line := bytes.TrimRight(bytes.TrimPrefix(lines.Bytes(), []byte("\ufeff")), "\r") // marks of joined files
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		if parse == nil {
			var err error
			if parse, err = f.header(string(line)); err != nil {
				return fmt.Errorf("%s:%d: %w", f.Path, n, err)
			}
			continue
		}
		if err := f.take(line, parse); err != nil {
			if errs = append(errs, fmt.Errorf("%s:%d: %w", f.Path, n, err)); len(errs) == maxErrors {
				return errors.Join(errs...)
			}
		}
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		errs = append(errs, fmt.Errorf("%s:%d: the line is longer than %d MiB", f.Path, n+1, recordedMaxLine>>20))
	case err != nil:
		return err
	case n == 0:
		return fmt.Errorf("%s is empty; its first line must name the columns", f.Path)
	}
	return errors.Join(errs...)
}

// take adds the voter's answers of a line.
func (f *file) take(line []byte, parse parser) error {
	if !utf8.Valid(line) {
		return errors.New("it is not UTF-8")
	}
	rows, err := parse(line)
	if err != nil {
		return err
	}
	for _, r := range rows {
		if r.id == "" {
			return errors.New("it has no id")
		}
		weight := 1.0
		if r.weight != "" {
			weight, err = strconv.ParseFloat(r.weight, 64)
			if err != nil || !(weight >= 0) || math.IsInf(weight, 0) {
				return fmt.Errorf("the weight %q is not a number of at least 0", r.weight)
			}
		}
		switch {
		case r.voter != f.Voter:
			f.others[r.voter] = true
		case r.answer != "" || r.none:
			if err := f.add(r.id, r.answer, weight); err != nil {
				return err
			}
		}
	}
	return nil
}

// add adds an answer of the voter.
func (f *file) add(id, label string, weight float64) error {
	if f.count++; f.count > maxAnswers {
		return fmt.Errorf("it has more than %d answers of one voter; split it, and the input with it", maxAnswers)
	}
	if _, ok := f.labels[label]; !ok {
		label = strings.Clone(label) // it shares memory with the line
		f.labels[label] = label
	}
	id = strings.Clone(id)
	f.answers[id] = append(f.answers[id], recordedAnswer{f.labels[label], weight})
	return nil
}

// header reads the first line of a TSV file.
func (f *file) header(line string) (parser, error) {
	names := strings.Split(line, "\t")
	at := map[string]int{}
	for i, name := range names {
		name = strings.TrimSpace(name)
		if _, twice := at[name]; twice {
			return nil, fmt.Errorf("two columns are named %q", name)
		}
		at[name] = i
	}
	for _, needed := range []string{"id", f.Column} {
		if _, ok := at[needed]; !ok {
			return nil, fmt.Errorf("there is no column %q: the first line must name the columns id, %s and, if there are any, voter and weight; it names %s. "+
				"column = \"...\" in config names another one for the answers", needed, f.Column, strings.Join(some(names), ", "))
		}
	}
	voter, hasVoter := at["voter"]
	weight, hasWeight := at["weight"]
	return func(line []byte) ([]recordedRow, error) {
		fields := strings.Split(string(line), "\t")
		if len(fields) != len(names) {
			return nil, fmt.Errorf("it has %d fields where the header has %d", len(fields), len(names))
		}
		for i := range fields {
			fields[i] = strings.TrimSpace(fields[i])
		}
		r := recordedRow{id: fields[at["id"]], voter: f.Voter, answer: fields[at[f.Column]]}
		if hasVoter {
			r.voter = fields[voter]
		}
		if hasWeight {
			r.weight = fields[weight]
		}
		return []recordedRow{r}, nil
	}, nil
}

// some quotes the first of a list of names, for an error.
func some(names []string) []string {
	var list []string
	for i, name := range names {
		if i == 8 {
			return append(list, "...")
		}
		if len(name) > 40 {
			name = strings.ToValidUTF8(name[:40], "") + "..."
		}
		list = append(list, strconv.Quote(name))
	}
	return list
}
