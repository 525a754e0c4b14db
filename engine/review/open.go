package review

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/doctor"
	"github.com/racflow/racflow/engine/explain"
	"github.com/racflow/racflow/engine/journal/manifest"
	"github.com/racflow/racflow/engine/pipeline"
)

// Review is a queue with what it was made of.
type Review struct {
	*Queue
	Title    string
	File     string // the pipeline's; absolute
	Place    Place
	Manifest manifest.Manifest // of the run; zero: findings are reviewed
	Gone     []string          // what of the run is not there any more: sentences

	details map[string][]byte // JSON by case, compressed
}

// Options say what is reviewed and where decisions go.
type Options struct {
	Knowledge string // that learns from the decisions; empty: see Find
	Path      string // of the file with decisions; empty: what the pipeline's file says
	Votes     int    // rows of a knowledge that voters are asked about, for findings
}

// OpenRun reviews a run, by its ID or as engine.Newest. What it needs of the run is read when it
// returns: nothing stays open or locked.
func OpenRun(ctx context.Context, o engine.Options, id string, r Options) (*Review, error) {
	run, err := explain.Open(ctx, o, id)
	if err != nil {
		return nil, err
	}
	defer run.Close()
	m := run.Manifest()
	p := run.Definition()
	if p == nil {
		return nil, fmt.Errorf("run %s cannot be reviewed, since the decisions are for its file: %s", run.ID(), strings.Join(run.Gone(), "; "))
	}
	is := &Review{Title: run.ID(), File: m.File, Manifest: m, Gone: run.Gone(), details: map[string][]byte{}}
	if is.Place, err = Find(m.File, p.Knowledge(), r.Knowledge, r.Path); err != nil {
		return nil, err
	}
	cases, err := OfRun(ctx, run, func(c Case, item *explain.Item) error {
		text, err := packed(item)
		is.details[c.ID] = text
		return err
	})
	if err != nil {
		return nil, err
	}
	is.Queue = NewQueue(is.Place.Path, run.ID(), cases, run.Labels())
	return is, nil
}

// OpenFindings reviews what racflow doctor finds in the rows of a file's knowledge.
func OpenFindings(ctx context.Context, w *engine.Workspace, file string, r Options) (*Review, error) {
	loaded, err := w.Load(file)
	if err != nil {
		return nil, err
	}
	blocks := loaded.Knowledge
	if len(loaded.Pipelines) > 0 {
		p, err := w.Choose(loaded)
		if err != nil {
			return nil, err
		}
		blocks = p.Knowledge()
	}
	is := &Review{Title: filepath.Base(file)}
	if is.File, err = filepath.Abs(file); err != nil {
		return nil, err
	}
	if is.Place, err = Find(is.File, blocks, r.Knowledge, r.Path); err != nil {
		return nil, err
	}
	at := slices.IndexFunc(blocks, func(k *pipeline.Knowledge) bool { return k.Name == is.Place.Knowledge })
	found, err := w.Diagnose(ctx, file, r.Votes)
	if err != nil {
		return nil, err
	}
	is.Gone = found.Skipped
	set := found.Knowledge[at]
	is.Queue = NewQueue(is.Place.Path, "", OfFindings(set), labelsOf(set))
	return is, nil
}

func labelsOf(s *doctor.Set) []string {
	all := map[string]bool{}
	for _, r := range s.Rows {
		if r.Label != "" {
			all[r.Label] = true
		}
	}
	return slices.Collect(maps.Keys(all))
}

// Details is what made the answer of a case, as JSON of an explain.Item; nil: the case is a row.
func (r *Review) Details(_ context.Context, c Case) (any, error) {
	text, ok := r.details[c.ID]
	if !ok {
		return nil, nil
	}
	z, err := gzip.NewReader(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	whole, err := io.ReadAll(z)
	return json.RawMessage(whole), err
}

// packed is JSON, compressed: of thousands of items, each with hundreds of texts.
func packed(what any) ([]byte, error) {
	var text bytes.Buffer
	z := gzip.NewWriter(&text)
	err := json.NewEncoder(z).Encode(what)
	err = errors.Join(err, z.Close())
	return text.Bytes(), err
}
