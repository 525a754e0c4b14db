package sdktest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/gob"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/support"
)

// memory is a store that compares everything with everything, and writes everything to a file with
// every commit. It may have one fault.
type memory struct {
	dir   string
	fault string
	mu    sync.RWMutex
	open  map[string]*kept
}

// kept is a collection. The maps never change once others can see them.
type kept struct {
	Schema  sdk.Schema
	Note    []byte
	Now     map[string]unit
	Commits int
	pending map[string]unit
}

// unit is an entry with the words of its text.
type unit struct {
	Entry sdk.Entry
	Words map[string]int
	Total int
}

func memoryStage(fault string) sdk.Stage {
	return sdk.StoreStage("memory", "Everything in a map.", func(_ context.Context, setup sdk.Setup, _ none) (sdk.Store, error) {
		return &memory{dir: setup.StateDir, fault: fault, open: map[string]*kept{}}, nil
	}, sdk.Filters())
}

func (m *memory) file(name string) string {
	return filepath.Join(m.dir, hex.EncodeToString([]byte(name)))
}

func (m *memory) Open(_ context.Context, name string, schema sdk.Schema) (sdk.Collection, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	name = m.called(name)
	if _, err := support.NamedAnalyzer(schema.Analyzer); name == "" || err != nil && schema.Analyzer != "" {
		return sdk.Collection{}, sdk.Invalid(fmt.Errorf("collection %q: %w", name, err))
	}
	k, err := m.load(name)
	if err != nil {
		return sdk.Collection{}, err
	}
	if k.Now == nil {
		k.Schema, k.Now = schema, map[string]unit{}
	}
	if m.fault == "opens with any analyzer" {
		k.Schema.Analyzer = schema.Analyzer
	}
	if k.Schema != schema {
		return sdk.Collection{}, sdk.Invalid(fmt.Errorf("it was made with %+v, not %+v", k.Schema, schema))
	}
	k.pending = maps.Clone(k.Now)
	if old := m.open[name]; old != nil && m.fault == "open keeps the uncommitted" {
		k.pending = old.pending
	}
	if m.fault == "forgets the note" {
		k.Note = nil
	}
	m.open[name] = k
	return sdk.Collection{Entries: len(k.Now), Dimension: schema.Dimension, Note: k.Note}, nil
}

// load reads what was committed; nothing if there is no file.
func (m *memory) load(name string) (*kept, error) {
	k := &kept{}
	raw, err := os.ReadFile(m.file(m.called(name)))
	if errors.Is(err, fs.ErrNotExist) {
		return k, nil
	}
	if err == nil {
		err = gob.NewDecoder(bytes.NewReader(raw)).Decode(k)
	}
	return k, err
}

func (m *memory) List(context.Context) ([]sdk.Collection, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	files, err := os.ReadDir(m.dir)
	var list []sdk.Collection
	for _, f := range files {
		raw, readErr := os.ReadFile(filepath.Join(m.dir, f.Name()))
		name, nameErr := hex.DecodeString(f.Name())
		var k kept
		err = errors.Join(err, readErr, nameErr, gob.NewDecoder(bytes.NewReader(raw)).Decode(&k))
		list = append(list, sdk.Collection{Name: string(name), Entries: len(k.Now), Dimension: k.Schema.Dimension, Note: k.Note})
	}
	if m.fault == "lists without notes" && len(list) > 0 {
		list[0].Note = nil
	}
	slices.SortFunc(list, func(a, b sdk.Collection) int { return cmp.Compare(a.Name, b.Name) })
	return list, err
}

func (m *memory) Drop(_ context.Context, name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	name = m.called(name)
	delete(m.open, name)
	if m.fault == "drops nothing" {
		return nil
	}
	err := os.Remove(m.file(name))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return err
}

// called returns the name under which a collection is stored.
func (m *memory) called(name string) string {
	if m.fault == "mixes collections" {
		return string(bytes.ToLower([]byte(name)))
	}
	return name
}

// writing calls do with a collection while nobody reads it.
func (m *memory) writing(name string, do func(*kept) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.open[m.called(name)]
	if k == nil {
		return sdk.Invalid(fmt.Errorf("collection %q is not open", name))
	}
	return do(k)
}

// read returns the committed state of a collection.
func (m *memory) read(name string) (kept, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	k := m.open[m.called(name)]
	if k == nil {
		return kept{}, sdk.Invalid(fmt.Errorf("collection %q is not open", name))
	}
	if m.fault == "visible before commit" {
		return kept{Schema: k.Schema, Now: maps.Clone(k.pending)}, nil
	}
	return *k, nil
}

func (m *memory) Put(_ context.Context, name string, entries []sdk.Entry) error {
	m.pause(len(entries))
	return m.writing(name, func(k *kept) error {
		pending := maps.Clone(k.pending)
		if m.fault == "writes half of a bad batch" {
			pending = k.pending
		}
		if m.fault == "first of the same id wins" {
			entries = slices.Clone(entries)
			slices.Reverse(entries)
		}
		for _, e := range entries {
			number := !slices.ContainsFunc(e.Vector, func(x float32) bool { return math.IsNaN(float64(x - x)) })
			long := m.fault == "a long text fails all" && len(e.Text) > 65_535
			if long || e.ID == "" || len(e.Vector) != k.Schema.Dimension || !number && m.fault != "takes NaN" {
				return sdk.Invalid(fmt.Errorf("entry %q cannot be taken", e.ID))
			}
			u, err := m.unit(k.Schema, e)
			if err != nil {
				return err
			}
			pending[e.ID] = u
		}
		k.pending = pending
		return nil
	})
}

func (m *memory) unit(schema sdk.Schema, e sdk.Entry) (unit, error) {
	switch m.fault {
	case "cuts long texts":
		e.Text = e.Text[:min(len(e.Text), 32<<10)]
	case "ends strings at NUL":
		e.Label, _, _ = cutNUL(e.Label)
	case "numbers become strings":
		e.Meta = maps.Clone(e.Meta)
		for key, value := range e.Meta {
			if x, ok := value.(float64); ok {
				e.Meta[key] = fmt.Sprint(x)
			}
		}
	}
	u := unit{Entry: e, Words: map[string]int{}}
	if schema.Analyzer == "" {
		return u, nil
	}
	analyzer, err := support.NamedAnalyzer(schema.Analyzer)
	for _, w := range analyzer.Append(nil, e.Context+"\n"+e.Text) {
		u.Words[w]++
		u.Total++
	}
	return u, err
}

func cutNUL(s string) (before, after string, found bool) {
	raw, rest, found := bytes.Cut([]byte(s), []byte{0})
	return string(raw), string(rest), found
}

func (m *memory) Delete(_ context.Context, name string, ids []string) error {
	return m.writing(name, func(k *kept) error {
		k.pending = maps.Clone(k.pending)
		for _, id := range ids {
			delete(k.pending, id)
		}
		return nil
	})
}

func (m *memory) Commit(_ context.Context, name string, note []byte) error {
	return m.writing(name, func(k *kept) error {
		there, err := m.load(name)
		if err != nil {
			return err
		}
		if there.Commits != k.Commits && m.fault != "overwrites what another process wrote" {
			return sdk.Transient(fmt.Errorf("collection %q was changed by another process", name), 0)
		}
		k.Commits++
		k.Note = bytes.Clone(note)
		if m.fault == "shows a commit bit by bit" {
			m.trickle(k)
		}
		k.Now = maps.Clone(k.pending)
		if m.fault == "forgets at a restart" {
			return nil
		}
		var b bytes.Buffer
		if err := gob.NewEncoder(&b).Encode(k); err != nil {
			return err
		}
		return os.WriteFile(m.file(m.called(name)), b.Bytes(), 0o600)
	})
}

func (m *memory) Get(_ context.Context, name string, ids []string) ([]sdk.Entry, error) {
	k, err := m.read(name)
	if err != nil {
		return nil, err
	}
	entries := make([]sdk.Entry, len(ids))
	for i, id := range ids {
		if m.fault == "gets an id once" && slices.Contains(ids[:i], id) {
			continue
		}
		entries[i] = k.Now[id].Entry
		entries[i].Vector = nil
	}
	return entries, nil
}

func (m *memory) Scan(_ context.Context, name string, s sdk.Scan) (sdk.Page, error) {
	k, err := m.read(name)
	if err != nil {
		return sdk.Page{}, err
	}
	var page sdk.Page
	size, from := 0, 0
	for place, id := range slices.Sorted(maps.Keys(k.Now)) {
		e := k.Now[id].Entry
		if m.fault == "pages by number" {
			if fmt.Sscan(s.After, &from); place < from {
				continue
			}
		} else if s.After != "" && id <= s.After {
			continue
		}
		if len(s.Labels) > 0 && !slices.Contains(s.Labels, e.Label) {
			continue
		}
		if s.Limit > 0 && len(page.Entries) == s.Limit || size > 16<<20 {
			page.Next = cmp.Or(page.Next, page.Entries[len(page.Entries)-1].ID)
			if m.fault == "pages by number" {
				page.Next = fmt.Sprint(place)
			}
			break
		}
		if !s.Texts {
			e.Text, e.Context, e.Meta = "", "", nil
		}
		if !s.Vectors {
			e.Vector = nil
		}
		size += len(e.Text) + len(e.Context) + 4*len(e.Vector)
		page.Entries = append(page.Entries, e)
	}
	return page, nil
}
