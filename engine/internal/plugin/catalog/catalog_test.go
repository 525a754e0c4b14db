package catalog

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/racflow/racflow/engine/internal/file/require"
	"github.com/racflow/racflow/engine/internal/plugin"
	"github.com/racflow/racflow/engine/internal/process/host"
	"github.com/racflow/racflow/sdk/sdktest/must"

	"github.com/racflow/racflow/engine/internal/plugin/registry"
	"github.com/racflow/racflow/engine/internal/process/confine"
	"github.com/racflow/racflow/engine/internal/process/program"
	"github.com/racflow/racflow/sdk"
)

// machine is a folder with programs that leave a mark when they are executed, if they are allowed to. Some are in
// development, and one is locked.
type machine struct {
	t         *testing.T
	dir, mark string
	locked    string // hash
	required  require.Plugin
	entry     plugin.LockedPlugin
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	m := &machine{t: t, dir: t.TempDir()}
	m.mark = filepath.Join(m.dir, "marks", "executed")
	m.required = require.Plugin{Name: "mine", Source: "x/mine", Version: "1", Allow: program.Allow{Write: []string{filepath.Dir(m.mark)}}}
	if err := os.Mkdir(filepath.Dir(m.mark), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(m.dir, "config"))
	t.Setenv("HOME", m.dir)
	t.Setenv(registry.StoreVariable, filepath.Join(m.dir, "cache"))
	t.Setenv(pluginsVariable, "")
	t.Setenv("GOCOVERDIR", filepath.Dir(m.mark)) // every program may write there
	s, err := registry.OpenStore("")
	if err != nil {
		t.Fatal(err)
	}
	description, err := registry.EncodeDescription(sdk.Plugin{Name: "mine", Version: "1.0.0", Stages: []sdk.Stage{
		sdk.SampleStage("words", "", func(context.Context, sdk.Setup, struct{}) (sdk.Sampler, error) { return nil, nil }, sdk.Reads(sdk.ColumnText)),
	}})
	if err != nil {
		t.Fatal(err)
	}
	if m.locked, err = s.Add("mine", strings.NewReader(m.script("locked")), false, "", description); err != nil {
		t.Fatal(err)
	}
	m.entry = plugin.LockedPlugin{
		Name: "mine", Source: "x/mine", Version: "1.0.0", Constraint: "1", Protocol: 2, Signer: "minisign:RWQ", Programs: map[string]string{runtime.GOOS + "/" + runtime.GOARCH: m.locked},
	}
	if err := errors.Join(s.Vouch(m.entry, m.locked), m.lock()); err != nil {
		t.Fatal(err)
	}
	return m
}

func (m *machine) lock() error {
	return (&plugin.Lock{Plugins: []plugin.LockedPlugin{m.entry}}).Write(filepath.Join(m.dir, plugin.LockName))
}

func (m *machine) script(name string) string {
	return "#!/bin/sh\n# " + name + "\necho executed >> '" + m.mark + "'\nexit 7\n"
}

// develop puts a program into its own folder.
func (m *machine) develop(folder string) program.Program {
	m.t.Helper()
	dir := filepath.Join(m.dir, folder)
	path := filepath.Join(dir, "racflow-plugin-mine")
	if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(path, []byte(m.script(folder)), 0o700)); err != nil {
		m.t.Fatal(err)
	}
	p, err := program.At(path)
	if err != nil {
		m.t.Fatal(err)
	}
	p.Project = dir
	return p
}

func (m *machine) catalog(given ...string) *Catalog {
	m.t.Helper()
	h, err := host.New(host.Options{StateDir: filepath.Join(m.dir, "state")})
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(h.Close)
	for i, dir := range given {
		given[i] = filepath.Join(m.dir, dir)
	}
	c, err := New(m.t.Context(), h, []sdk.Stage{{Kind: sdk.KindSample, Name: "own"}}, Folders(given))
	if err != nil {
		m.t.Fatal(err)
	}
	return c
}

func (m *machine) executed() bool {
	_, err := os.Stat(m.mark)
	return err == nil
}

// The program for a name: a given folder takes precedence over a linked program, which takes precedence over a locked
// one. No program is executed to find out.
func TestOrder(t *testing.T) {
	link := func(m *machine) error { return program.Link(m.develop("linked")) }
	for name, c := range map[string]struct {
		given       []string
		variable    string
		change      func(*machine) error
		unrequired  bool
		sourceless  bool
		want        program.Origin
		path, error string // a part of it
	}{
		"locked":                {want: program.Locked, path: "cache"},
		"linked":                {change: link, want: program.Linked, path: "linked"},
		"given":                 {given: []string{"one"}, change: link, want: program.Given, path: "one"},
		"of the environment":    {variable: "two", change: link, want: program.Given, path: "two"},
		"twice the same folder": {given: []string{"one", "one"}, want: program.Given, path: "one"},
		"given twice":           {given: []string{"one", "two"}, error: "several programs of the plugin \"mine\""},
		"given and environment": {given: []string{"one"}, variable: "two", error: "leave one folder out of Options.Plugins and RACFLOW_PLUGINS"},
		"linked and changed": {change: func(m *machine) error {
			return errors.Join(link(m), os.WriteFile(m.dir+"/linked/racflow-plugin-mine", nil, 0o700))
		}, error: "has changed since it was installed for development: install it again with racflow plugin install "},
		"linked, and gone":          {change: func(m *machine) error { return errors.Join(link(m), os.RemoveAll(m.dir+"/linked")) }, error: "there is no program"},
		"given, not executable":     {given: []string{"one"}, change: func(m *machine) error { return os.Chmod(m.dir+"/one/racflow-plugin-mine", 0o600) }, error: "may not be executed"},
		"without a source":          {sourceless: true, error: "without saying where it comes from"},
		"linked, without a source":  {sourceless: true, change: link, want: program.Linked, path: "linked"},
		"not required":              {unrequired: true, error: "there is no plugin \"mine\": the file does not require it. Write required_plugins { mine = "},
		"not required, but linked":  {unrequired: true, change: link, want: program.Linked, path: "linked"},
		"not required, but looked":  {unrequired: true, given: []string{"none"}, error: "/none holds a program named racflow-plugin-mine"},
		"a lock of another version": {change: func(m *machine) error { m.required.Version = "2"; return nil }, error: "was chosen by \"1\", and the file now has \"2\""},
		"a lock of another signer":  {change: func(m *machine) error { m.entry.Signer = "minisign:RWR"; return m.lock() }, error: "locked as signed by minisign:RWR, and this machine has not checked that"},
		"a lock without the signer": {change: func(m *machine) error { m.entry.Signer = ""; return m.lock() }, error: "locked as signed by nobody, and this machine has not checked that"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			m.develop("one")
			m.develop("two")
			if c.variable != "" {
				t.Setenv(pluginsVariable, filepath.Join(m.dir, c.variable))
			}
			if c.change != nil {
				if err := c.change(m); err != nil {
					t.Fatal(err)
				}
			}
			var required []require.Plugin
			if c.sourceless {
				m.required.Source = ""
			}
			if !c.unrequired {
				required = append(required, m.required)
			}
			known := m.catalog(c.given...).For(m.dir, required)
			p, why := known.Program("mine/words"), known.Explain("mine/words")
			switch {
			case c.error != "":
				if p != nil || why == nil || !strings.Contains(why.Error(), c.error) {
					t.Errorf("%+v, %v, want %q", p, why, c.error)
				}
				if stage, ok := known.Stage(sdk.KindSample, "mine/words"); ok {
					t.Errorf("it offers %+v", stage)
				}
			case p == nil || why != nil || p.Origin != c.want || !strings.Contains(p.Path, string(filepath.Separator)+c.path+string(filepath.Separator)):
				t.Errorf("%+v, %v", p, why)
			case (len(p.Allow.Write) == 1) == c.unrequired:
				t.Errorf("it may reach %+v", p.Allow)
			}
			known.Uses(sdk.KindSample)
			known.Plugins()
			if m.executed() {
				t.Error("a program was executed")
			}
		})
	}
}

// A locked program is described by the description that came with it. A program in development is asked when a file
// names one of its stages, but not to list stages; a failure is remembered.
func TestStages(t *testing.T) {
	m := newMachine(t)
	required := []require.Plugin{m.required}
	known := m.catalog().For(m.dir, required)
	if diff := cmp.Diff([]string{"own", "mine/words"}, known.Uses(sdk.KindSample)); diff != "" {
		t.Error(diff)
	}
	if s, ok := known.Stage(sdk.KindSample, "mine/words"); !ok || !s.Reads.Has(sdk.ColumnText) {
		t.Errorf("got %+v, %v", s, ok)
	}
	if _, ok := known.Stage(sdk.KindRerank, "mine/words"); ok || known.Explain("mine/words") != nil {
		t.Errorf("a stage that it does not offer: %v, %v", ok, known.Explain("mine/words"))
	}
	if p := known.Program("own"); p != nil {
		t.Errorf("a built-in stage has the program %+v", p)
	}
	listed := []Plugin{{Name: "mine", Version: "1.0.0", Origin: program.Locked, Source: "x/mine", Signer: "minisign:RWQ", Hash: m.locked}}
	must.Equal(t, "listed", listed, known.Plugins(), cmpopts.IgnoreFields(Plugin{}, "Path"))
	installed := must.Get(known.Installed())(t)
	must.Equal(t, "installed", []Plugin{{Name: "mine", Version: "1.0.0", Hash: m.locked}}, installed, cmpopts.IgnoreFields(Plugin{}, "Path"))
	must.Equal(t, "its program", "racflow-plugin-mine", filepath.Base(installed[0].Path))
	if m.executed() {
		t.Error("a program was executed")
	}
	m.develop("one")
	base := m.catalog("one")
	for range 2 {
		known = base.For(m.dir, required)
		if _, ok := known.Stage(sdk.KindSample, "mine/words"); ok {
			t.Error("a program that ends at once offers a stage")
		}
		if err := known.Explain("mine/words"); err == nil || !strings.Contains(err.Error(), "exit status 7") {
			t.Errorf("why: %v", err)
		}
	}
	executed := func(want int) {
		t.Helper()
		if raw, err := os.ReadFile(m.mark); err != nil || strings.Count(string(raw), "executed") != want {
			t.Errorf("executed %q, %v, want %d times", raw, err, want)
		}
	}
	executed(1)
	if err := os.WriteFile(m.dir+"/one/racflow-plugin-mine", []byte(m.script("mended")), 0o700); err != nil {
		t.Fatal(err)
	}
	base.For(m.dir, required).Stage(sdk.KindSample, "mine/words")
	executed(2)
}

// A program of a given folder describes itself without the access that the file allows: nobody has granted it yet.
func TestNothingGranted(t *testing.T) {
	if !confine.Supported {
		t.Skip("this system confines nothing")
	}
	for name, allow := range map[string]program.Allow{
		"nothing": {}, "no confinement": {Unconfined: true}, "a folder": {Write: []string{"marks"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			t.Setenv("GOCOVERDIR", "")
			for i := range allow.Write {
				allow.Write[i] = filepath.Join(m.dir, allow.Write[i])
			}
			m.develop("one")
			c := m.catalog("one").For(m.dir, []require.Plugin{{Name: "mine", Allow: allow}})
			if _, ok := c.Stage(sdk.KindSample, "mine/words"); ok || c.Explain("mine/words") == nil {
				t.Error("the program was not asked")
			}
			if m.executed() {
				t.Error("it has left its mark")
			}
			if p := c.Program("mine/words"); !reflect.DeepEqual(p.Allow, allow) {
				t.Errorf("once it is granted, it gets %+v", p.Allow)
			}
		})
	}
}
