package journal

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/racflow/racflow/engine/internal/knowledge/source"
	"github.com/racflow/racflow/engine/internal/run/outcome"
)

var errPower = errors.New("the power has failed")

// machine is a disk whose power fails after some operations. It knows what has been forced
// to the disk by then.
type machine struct {
	left    int // operations until the power fails
	ops     []string
	content map[string][]byte // as the system has it
	durable map[string][]byte // by the last Sync of a file whose name is durable, too
	made    map[string]bool   // files whose folder was not forced since they were made
}

func newMachine(ops int) *machine {
	return &machine{left: ops, content: map[string][]byte{}, durable: map[string][]byte{}, made: map[string]bool{}}
}

func (m *machine) op(what string) error {
	if m.left == 0 {
		return errPower
	}
	m.left--
	m.ops = append(m.ops, what)
	return nil
}

func (m *machine) open(path string, flags int) (file, error) {
	name := filepath.Base(path)
	if err := m.op("open " + name); err != nil {
		return nil, err
	}
	f, err := system{}.open(path, flags)
	m.made[name] = true
	return &watched{f, name, m}, err
}

func (m *machine) locked(f *os.File) file {
	m.made[File] = true
	return &watched{f, File, m}
}

func (m *machine) syncFolder(string) error {
	if err := m.op("sync folder"); err != nil {
		return err
	}
	clear(m.made)
	return nil
}

type watched struct {
	file
	name string
	*machine
}

func (w *watched) WriteAt(b []byte, at int64) (int, error) {
	if w.left == 0 {
		return 0, errPower
	}
	if w.op("write " + w.name); w.left == 0 { // half of it
		b = b[:len(b)/2]
	}
	w.content[w.name] = append(w.content[w.name][:at:at], b...)
	n, err := w.file.WriteAt(b, at)
	if w.left == 0 {
		err = errPower
	}
	return n, err
}

func (w *watched) Truncate(size int64) error {
	if err := w.op("truncate " + w.name); err != nil {
		return err
	}
	w.content[w.name] = w.content[w.name][:size]
	return w.file.Truncate(size)
}

func (w *watched) Sync() error {
	if err := w.op("sync " + w.name); err != nil {
		return err
	}
	if !w.made[w.name] {
		w.durable[w.name] = slices.Clone(w.content[w.name])
	}
	return nil
}

// survives copies a run to a new folder as the power failure left it: what was forced to the
// disk, and some part of what was written after that.
func (m *machine) survives(t *testing.T, dir string, random *rand.Rand) string {
	t.Helper()
	after := filepath.Join(t.TempDir(), filepath.Base(dir))
	if err := os.Mkdir(after, 0o700); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "manifest.json"))
	if err == nil {
		err = os.WriteFile(filepath.Join(after, "manifest.json"), text, 0o600)
	}
	for _, name := range shelfFiles {
		left := m.durable[name]
		if now := m.content[name]; err == nil && len(now) > len(left) {
			left = now[:len(left)+random.IntN(len(now)-len(left)+1)]
		}
		if err == nil && (left != nil || name == File) {
			err = os.WriteFile(filepath.Join(after, name), left, 0o600)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return after
}

// run keeps batches until the power fails, and returns the results that were reported: those of
// batches whose Keep has returned.
func (m *machine) run(t *testing.T, sync Sync, random *rand.Rand) (dir string, reported []outcome.Result) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "run-000001")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	j, err := Create(dir, Manifest{ID: "run-000001", Format: CurrentFormat}, Options{Sync: sync, disk: m})
	if err != nil {
		if !errors.Is(err, errPower) {
			t.Fatal(err)
		}
		return dir, nil
	}
	defer j.Close(nil)
	for line := 2; ; {
		var batch []outcome.Result
		for range 1 + random.IntN(5) {
			r := outcome.Result{Line: line, ID: fmt.Sprint(line), Answer: strings.Repeat("x", random.IntN(50)), Flagged: random.IntN(2) == 0}
			switch random.IntN(6) {
			case 0:
				r = outcome.Result{Line: line, ID: r.ID, Failure: &outcome.Failure{Stage: "sample.llm", Err: errors.New("away")}}
			case 1:
				r.Missing = []*outcome.Failure{{Stage: "sample.llm", Err: errors.New("away")}}
			}
			batch = append(batch, r)
			line++
		}
		if err := j.Keep(batch); err != nil {
			if !errors.Is(err, errPower) {
				t.Fatal(err)
			}
			return dir, reported
		}
		reported = append(reported, batch...)
	}
}

// TestPowerFailure lets the power fail after every number of operations. What was reported is
// there then, and what is there is what was kept.
func TestPowerFailure(t *testing.T) {
	for _, sync := range []Sync{SyncNone, SyncBatch, SyncItem} {
		t.Run(string(sync), func(t *testing.T) {
			lost := 0
			for ops := range 60 {
				random := rand.New(rand.NewPCG(uint64(ops), 7))
				m := newMachine(ops)
				dir, reported := m.run(t, sync, random)
				if len(reported) == 0 {
					continue
				}
				j, err := Open(m.survives(t, dir, random))
				if err != nil {
					t.Fatal(err)
				}
				for _, want := range reported {
					row := source.Row{Line: want.Line, ID: want.ID}
					status := of(&want)
					e := j.entry(status, row)
					if e == nil {
						lost++
						continue
					}
					if got := e.result(); got.Answer != want.Answer || got.Flagged != want.Flagged {
						t.Errorf("after %d operations: line %d is %+v, and was %+v", ops, want.Line, got, want)
					}
				}
				if j.Changed > 0 {
					t.Errorf("after %d operations: %d lines count as changed", ops, j.Changed)
				}
				if err := j.Close(nil); err != nil {
					t.Fatal(err)
				}
			}
			if sync == SyncNone && lost == 0 {
				t.Error("nothing is lost without forcing it: this test cannot fail")
			}
			if sync != SyncNone && lost > 0 {
				t.Errorf("%d reported results are lost", lost)
			}
		})
	}
}

// TestSyncItem forces each result before the next one is written.
func TestSyncItem(t *testing.T) {
	m := newMachine(200)
	m.run(t, SyncItem, rand.New(rand.NewPCG(1, 1)))
	for i, op := range m.ops[:len(m.ops)-1] {
		if name, ok := strings.CutPrefix(op, "write "); ok && m.ops[i+1] != "sync "+name {
			t.Errorf("operation %d is %q, and after it comes %q", i, op, m.ops[i+1])
		}
	}
}
