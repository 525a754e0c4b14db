package simulation

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/racflow/racflow/engine/internal/enginetest"
	"github.com/racflow/racflow/engine/internal/knowledge"
	"github.com/racflow/racflow/engine/internal/knowledge/generation"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/proto/stagepb"
)

// This file checks what must hold for a knowledge, whoever has built it.

// sees checks that nothing that votes on a row has seen it. Items and rows have different names.
func (l *library) sees(at *link, name string, message any) {
	if name == "Embed" && l.many { // between the commits of a long build
		l.look(at.m.dir)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if name == "Start" {
		if dir := at.spec.StateDir; !strings.HasPrefix(filepath.Base(dir), "new-") {
			l.dirs[at.spec.Block] = dir
		}
		return
	}
	asked, ok := message.(interface{ GetRows() *stagepb.Rows })
	if !ok || at.spec.Kind == sdk.KindStore || at.spec.Kind == sdk.KindEmbed {
		return
	}
	if l.known[at] == nil {
		l.known[at] = map[string]bool{}
	}
	rows := asked.GetRows()
	if name == "Fit" {
		for _, id := range rows.GetId() {
			l.known[at][id] = true
		}
		return
	}
	for i, id := range rows.GetId() {
		if l.known[at][id] {
			l.Errorf("%s votes on row %s, from which it has learnt", at.what, id)
		}
		if c := rows.GetCandidates(); c != nil && strings.HasPrefix(id, "r") {
			from := 0
			for n, size := range c.GetIdBytes() {
				if end := from + int(size); c.GetIds()[from:end] == id && n < int(c.GetOffsets()[i+1]) && n >= int(c.GetOffsets()[i]) {
					l.Errorf("%s finds row %s among the candidates for it", at.what, id)
				}
				from += int(size)
			}
		}
	}
}

// look checks what runs would now search in a folder: a complete index version holds exactly one
// version of the rows, and no reported build is lost.
func (l *library) look(dir string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := slices.IndexFunc(stages, func(s sdk.Stage) bool { return s.Kind == sdk.KindStore && s.Name == "local" })
	store, err := enginetest.Open(l.T, stages[at], sdk.Setup{StateDir: filepath.Join(dir, "state", "knowledge", "k")}, "{}")
	if err != nil {
		l.Fatal(err)
	}
	all, err := store.List(l.Context())
	if err != nil {
		l.Fatal(err)
	}
	complete := 0
	for _, c := range all {
		note, ours := generation.ReadNote(c.Note)
		if !ours || !note.Complete {
			continue
		}
		complete++
		found := map[string]string{}
		_, err := store.Open(l.Context(), c.Name, sdk.Schema{Dimension: c.Dimension, Analyzer: "standard"})
		if err == nil {
			err = generation.Scan(l.Context(), store, c.Name, sdk.Scan{Texts: true}, func(e sdk.Entry) { found[e.ID] = e.Text + " is " + e.Label })
		}
		if err != nil {
			l.Fatal(err)
		}
		version := len(l.versions) - 1
		for version >= 0 && !maps.Equal(found, l.versions[version]) {
			version--
		}
		if version < max(l.kept, 0) {
			l.Errorf("generation %s has version %d, and version %d was built:\n%v\n%v", c.Name, version, l.kept, found, l.newest())
		}
	}
	if complete == 0 && l.kept >= 0 {
		l.Errorf("no generation is complete, and version %d was built", l.kept)
	}
}

// check checks what a new process finds.
func (l *library) check(m *machine) {
	before := l.kept == len(l.versions)-1
	err := l.build(m.ctx, m, "", func(r knowledge.BuildReport, k *knowledge.Knowledge) {
		if done := r.Added + r.Changed + r.Removed; before && done > 0 {
			l.Errorf("%d rows are built again", done)
		}
		found, texts, with := map[string]string{}, []string{}, map[string]bool{}
		err := k.Entries(m.ctx, sdk.Scan{Texts: true}, func(e sdk.Entry) {
			found[e.ID], with[e.Label] = e.Text+" is "+e.Label, true
			texts = append(texts, e.Text)
		})
		_, nearest, failed := k.Nearest(m.ctx, texts)
		if err = errors.Join(err, failed); err != nil {
			l.Fatal(err)
		}
		if !maps.Equal(found, l.newest()) {
			l.Errorf("a new process finds\n%v\nof the rows\n%v", found, l.newest())
		}
		if now := slices.Sorted(maps.Keys(with)); !slices.Equal(now, k.Labels) {
			l.Errorf("it has the labels %q of %q", k.Labels, now)
		}
		for i, text := range texts {
			if nearest[i].Dense < 0.999 && !l.enriched { // an enriched row has another vector than its text
				l.Errorf("what is nearest to %q is %q, by %v", text, nearest[i].Text, nearest[i].Dense)
			}
		}
	})
	if err != nil {
		l.Errorf("a new process fails: %v", err)
	}
	l.kept = len(l.versions) - 1
}

// learnt returns what stages have learnt in the process that began last.
func (l *library) learnt() (words string, votes []enginetest.Witnessed) {
	text, err := os.ReadFile(filepath.Join(l.dirs["words"], "labels.json"))
	raw, failed := os.ReadFile(filepath.Join(l.dirs["e"], enginetest.WitnessFile))
	if err = errors.Join(err, failed, json.Unmarshal(raw, &votes)); err != nil {
		l.Fatal(err)
	}
	if l.embedder == "hashing" { // it learnt from earlier rows, and now finds others
		votes = nil
	}
	return string(text), votes
}
