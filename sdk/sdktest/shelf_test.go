package sdktest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/racflow/racflow/sdk"
)

type shelfConfig struct {
	Collection string `config:"collection" doc:"A file of JSON that somebody else wrote."`
}

// shelf is a store that attaches a JSON file. It may have one fault.
type shelf struct {
	sdk.Store // for methods that it lacks
	file      string
	fault     string
	calls     int
	mu        sync.Mutex
	rows      []sdk.Entry // nil: not attached
}

func shelfStage(fault string) sdk.Stage {
	return sdk.StoreStage("shelf", "Reads a file.", func(_ context.Context, _ sdk.Setup, c shelfConfig) (sdk.Store, error) {
		s := &shelf{file: c.Collection, fault: fault}
		if fault == "opens without Attach" {
			_, _ = s.Attach(context.Background())
		}
		return s, nil
	}, sdk.Filters(), sdk.Attaches("collection"))
}

func (s *shelf) Attach(context.Context) (sdk.Attached, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls++; s.fault == "forgets the rows while attached" && s.calls > 1 {
		s.rows = s.rows[:1]
	}
	raw, err := os.ReadFile(s.file)
	if errors.Is(err, fs.ErrNotExist) {
		switch s.fault {
		case "makes what is not there":
			raw, err = []byte("[]"), nil
		case "says nothing of the name":
			return sdk.Attached{}, sdk.Invalid(errors.New("there is no such file"))
		default:
			return sdk.Attached{}, sdk.Invalid(fmt.Errorf("there is no file %s: say which one is meant in collection", s.file))
		}
	}
	if err != nil {
		return sdk.Attached{}, err
	}
	var rows []sdk.Entry
	if err := json.Unmarshal(raw, &rows); err != nil {
		return sdk.Attached{}, err
	}
	if s.fault == "years become texts" {
		for i := range rows {
			rows[i].Meta["year"] = fmt.Sprint(rows[i].Meta["year"])
		}
	}
	if s.fault != "forgets the rows while attached" || s.calls == 1 {
		s.rows = rows
	}
	a := sdk.Attached{Name: "shelf", ID: s.file, Entries: len(rows), Dimension: 8, Lexical: s.words() || s.fault == "promises words", Labels: true}
	for _, part := range []string{"id", "text", "vector", "label"} {
		if s.fault != "says no fields" {
			a.Fields = append(a.Fields, sdk.AttachedField{Part: part, Field: part, Why: "its name"})
		}
	}
	switch s.fault {
	case "another ID each time":
		a.ID += strings.Repeat("x", s.calls)
	case "one ID for all":
		a.ID = "1"
	}
	return a, nil
}

// words reports whether it searches by words.
func (s *shelf) words() bool {
	return s.fault != "without words" && s.fault != "promises words" && s.fault != "an empty leg"
}

func (s *shelf) attached() ([]sdk.Entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rows == nil {
		return nil, sdk.Invalid(errors.New("nothing is attached"))
	}
	return s.rows, nil
}

func (s *shelf) write() error {
	switch s.fault {
	case "takes what is put":
		return nil
	case "writes beside it":
		_ = os.WriteFile(s.file+".lock", nil, 0o600)
	}
	return sdk.Invalid(errors.New("the collection is somebody else's"))
}

func (s *shelf) Put(context.Context, string, []sdk.Entry) error { return s.write() }
func (s *shelf) Delete(context.Context, string, []string) error { return s.write() }
func (s *shelf) Commit(context.Context, string, []byte) error   { return s.write() }
func (s *shelf) Drop(context.Context, string) error             { return s.write() }

func (s *shelf) Get(_ context.Context, _ string, ids []string) ([]sdk.Entry, error) {
	rows, err := s.attached()
	out := make([]sdk.Entry, len(ids))
	for i, id := range ids {
		at := slices.IndexFunc(rows, func(e sdk.Entry) bool { return e.ID == id })
		if at < 0 && s.fault == "unknown ids give the first" {
			at = 0
		}
		if at >= 0 {
			out[i] = rows[at]
			out[i].Vector = nil
		}
	}
	return out, err
}

func (s *shelf) Scan(_ context.Context, _ string, q sdk.Scan) (sdk.Page, error) {
	rows, err := s.attached()
	from := 0
	_, _ = fmt.Sscan(q.After, &from)
	var page sdk.Page
	for i, e := range rows[min(from, len(rows)):] {
		if len(q.Labels) > 0 && !slices.Contains(q.Labels, e.Label) && s.fault != "scans any label" {
			continue
		}
		if q.Limit > 0 && len(page.Entries) == q.Limit {
			page.Next = fmt.Sprint(from + i)
			if s.fault == "pages overlap" {
				page.Next = fmt.Sprint(from + i - 1)
			}
			break
		}
		if !q.Texts {
			e.Text, e.Context, e.Meta = "", "", nil
		}
		if !q.Vectors {
			e.Vector = nil
		}
		page.Entries = append(page.Entries, e)
	}
	return page, err
}

func (s *shelf) Search(_ context.Context, _ string, search sdk.Search, queries []sdk.Query) ([]sdk.Hits, error) {
	rows, err := s.attached()
	if err != nil {
		return nil, err
	}
	if search.Mode == sdk.ModeLexical && !s.words() {
		return nil, sdk.Invalid(errors.New("the collection is not searched by words"))
	}
	hits := make([]sdk.Hits, len(queries))
	for i, q := range queries {
		if search.Mode != sdk.ModeLexical {
			hits[i].Dense = s.best(rows, q, search.NumCandidates, func(e sdk.Entry) sdk.Hit { return sdk.Hit{Dense: s.cosine(q.Vector, e.Vector), Lexical: sdk.Unscored} })
		}
		if search.Mode != sdk.ModeDense && s.words() {
			hits[i].Lexical = s.best(rows, q, search.NumCandidates, func(e sdk.Entry) sdk.Hit { return sdk.Hit{Dense: sdk.Unscored, Lexical: s.count(q.Text, e.Text)} })
		} else if s.fault == "an empty leg" && search.Mode == sdk.ModeHybrid {
			hits[i].Lexical = []sdk.Hit{}
		}
	}
	return hits, nil
}

func (s *shelf) cosine(a, b []float32) float32 {
	n := math.Sqrt(dot(a, a) * dot(b, b))
	first := func() float64 {
		x := slices.MinFunc(s.rows, func(a, b sdk.Entry) int { return strings.Compare(a.ID, b.ID) }).Vector
		return dot(x, x)
	}
	if s.fault == "takes products for cosines" || s.fault == "looks at the first row alone" && math.Abs(first()-1) < .001 {
		n = math.Sqrt(dot(a, a))
	}
	return float32(dot(a, b) / n)
}

// count returns the number of the query's words in a text.
func (s *shelf) count(query, text string) (n float32) {
	for _, w := range strings.Fields(query) {
		if slices.Contains(strings.Fields(text), w) || s.fault == "finds all by words" {
			n++
		}
	}
	return n
}

// best returns the n best hits; a leg does not find entries whose score is zero or not a number.
func (s *shelf) best(rows []sdk.Entry, q sdk.Query, n int, score func(sdk.Entry) sdk.Hit) []sdk.Hit {
	value := func(h sdk.Hit) float32 {
		if math.IsNaN(float64(h.Lexical)) {
			return h.Dense
		}
		return h.Lexical
	}
	var all []sdk.Hit
	for i := range rows {
		e := &rows[i]
		h := score(*e)
		h.ID, h.Entry = e.ID, e
		if v := float64(value(h)); !math.IsNaN(v) && h.Lexical != 0 && (s.fault == "filters after the cut" || s.match(q.Filter, e)) {
			all = append(all, h)
		}
	}
	slices.SortFunc(all, func(a, b sdk.Hit) int { return cmp.Or(cmp.Compare(value(b), value(a)), cmp.Compare(a.ID, b.ID)) })
	if s.fault == "finds half" {
		n = min(n, len(all)/2)
	}
	all = all[:min(n, len(all))]
	return slices.DeleteFunc(all, func(h sdk.Hit) bool { return !s.match(q.Filter, h.Entry) })
}

func (s *shelf) match(f *sdk.Filter, e *sdk.Entry) bool {
	if f != nil && s.fault == "compares texts with numbers" && f.Op == sdk.FilterIn && f.Key == "year" {
		return slices.ContainsFunc(f.Values, func(v any) bool { return fmt.Sprint(v) == fmt.Sprint(e.Meta["year"]) })
	}
	return f.Match(e.ID, e.Label, e.Meta)
}
