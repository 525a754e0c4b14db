package trust

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/racflow/racflow/engine/internal/enginetest"
	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/process/program"
	"github.com/racflow/racflow/sdk"
)

// TestGrants grants wants and files to folders, one of which has a broken record.
func TestGrants(t *testing.T) {
	g := Grants{filepath.Join(t.TempDir(), "trust")}
	never := func([]byte) bool { return false }
	host, key, start := Want{Kind: Hosts, Text: "sends to h"}, Want{Kind: Secrets, Text: "gives h the secret K"}, Want{Kind: Plugins, Text: "starts p"}
	free := Want{Kind: Hosts, Text: "sends to f", Free: true}
	r := Request{Folder: "/a", Content: []byte("file"), Wants: []Want{host, free, key, start}}
	left := func(r Request, shipped func([]byte) bool, want ...Want) {
		t.Helper()
		got, err := g.Left(r, shipped)
		if err != nil || len(got)+len(want) > 0 && !reflect.DeepEqual(got, want) {
			t.Errorf("left is %v, %v; want %v", got, err, want)
		}
	}
	left(r, never, host, key, start)
	left(r, func(content []byte) bool { return string(content) == "file" }, start)
	for _, err := range []error{g.Grant("/a", []Want{host}), g.Grant("/a", []Want{start, host})} {
		if err != nil {
			t.Fatal(err)
		}
	}
	left(r, never, key)
	other := r
	other.Folder = "/b"
	left(other, never, host, key, start)
	path := filepath.Join(t.TempDir(), "p.hcl")
	if err := g.Written(path, []byte("written")); err != nil {
		t.Fatal(err)
	}
	written := Request{Folder: filepath.Dir(path), Content: []byte("written"), Wants: r.Wants}
	left(written, never, start)
	written.Content = []byte("written, and changed")
	left(written, never, host, key, start)

	if err := os.WriteFile(g.path("/a"), []byte(`{"folder": "/a", "wants": [`), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := g.Left(r, never); err == nil || len(got) != 3 {
		t.Errorf("of a broken record, %v is left, %v", got, err)
	}
	if err := g.Grant("/a", []Want{key}); err != nil {
		t.Fatal(err)
	}
	left(r, never, host, start)
	if info, err := os.Stat(g.path("/a")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the record is %v, %v", info, err)
	}
}

// catalog offers a third party's voter, beside the stages of enginetest.
type catalog struct {
	enginetest.Catalog
	voter     sdk.Stage
	program   program.Program
	validated *[]string // configs that the program got
}

func (c catalog) Stage(kind sdk.Kind, use string) (sdk.Stage, bool) {
	if use == "mine/voter" {
		return c.voter, true
	}
	return c.Catalog.Stage(kind, use)
}

func (c catalog) Program(use string) *program.Program {
	if use == "mine/voter" {
		return &c.program
	}
	return nil
}

func (c catalog) Validate(kind sdk.Kind, use string, config []byte) error {
	if use == "mine/voter" {
		*c.validated = append(*c.validated, string(config))
		return nil
	}
	stage, _ := c.Stage(kind, use)
	return stage.Validate(config)
}

// TestPluginWants has a file start a plugin: what that reaches is listed, and it gets no config to check
// before that is granted.
func TestPluginWants(t *testing.T) {
	dir := t.TempDir()
	var validated []string
	voter := sdk.SampleStage("voter", "", func(context.Context, sdk.Setup, struct {
		Key string `config:"key,secret"`
	}) (sdk.Sampler, error) {
		return nil, nil
	}, sdk.Network())
	elect := sdk.ElectStage("majority", "", func(context.Context, sdk.Setup, struct{}) (sdk.Elector, error) { return nil, nil })
	c := catalog{Catalog: enginetest.Catalog{elect}, voter: voter, validated: &validated, program: program.Program{
		Name: "mine", Version: "1.2.0", Hash: "sha256:0123456789abcdef", Origin: program.Locked,
		Allow: program.Allow{Hosts: []string{"api.example:443"}, Read: []string{dir + "/models", "/srv/models"}, Write: []string{dir + "/out"}, Unconfined: true},
	}}
	path := filepath.Join(dir, "p.hcl")
	text := `
required_plugins { mine = { source = "./releases" } }
pipeline "p" {
  sample "mine" {
    use = "mine/voter"
    config { key = secret("KEY") }
  }
  elect "e" { use = "majority" }
}`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	load := func(trusted bool) []Want {
		f, diags := pipeline.Load(t.Context(), path, pipeline.Options{
			Catalog: c, Dir: dir, Getenv: func(string) (string, bool) { return "hush-hush", true }, Trusted: func(*pipeline.File) bool { return trusted },
		})
		if diags.HasErrors() {
			t.Fatal(diags)
		}
		return Wants(f)
	}
	want := []Want{
		{Kind: Secrets, Text: "gives the plugin mine the secret KEY"},
		{Kind: Plugins, Text: "starts the plugin mine of ./releases, version 1.2.0, program 0123456789ab"},
		{Kind: Plugins, Text: "lets the plugin mine do whatever you can, without confinement"},
		{Kind: Plugins, Text: "lets the plugin mine reach api.example:443"},
		{Kind: Plugins, Text: "lets the plugin mine read /srv/models"},
		{Kind: Plugins, Text: "lets the plugin mine change " + dir + "/out"},
	}
	if got := load(false); !reflect.DeepEqual(got, want) {
		t.Errorf("it wants %v, want %v", got, want)
	}
	if len(validated) != 0 {
		t.Errorf("before it was granted, the plugin got %q", validated)
	}
	c.program.Origin = program.Given // by the person: its author says what it is
	if got := load(true); !reflect.DeepEqual(got, slices.Concat(want[:1], want[2:])) {
		t.Errorf("it wants %v", got)
	}
	if !slices.Equal(validated, []string{`{"key":"hush-hush"}`}) {
		t.Errorf("the plugin got %q", validated)
	}
}

func TestIsSaid(t *testing.T) {
	for said, want := range map[string]bool{
		"https://api.example.com/v1": true, "api.example.com": true, "a=http://api.example.com,b": true, `{ url = "https://api.example.com" }`: true,
		"https://api.example.com.au": false, "https://my-api.example.com": false, "https://api.example.com:8443": false, "https://x@api.example.com": false, "": false,
	} {
		if got := (&wants{said: []string{said}}).isSaid("api.example.com"); got != want {
			t.Errorf("whoever says %q names it: %v", said, got)
		}
	}
}

// service is the config of a built-in voter that calls services.
type service struct {
	URL  string            `config:"url" default:"https://api.openai.com/v1"`
	More map[string]string `config:"more"`
	Key  string            `config:"key,secret"`
	Keys map[string]string `config:"keys,secret"`
	File sdk.Path          `config:"file"`
}

// stages are a whole pipeline of built-in stages.
func stages() enginetest.Catalog {
	type none = struct{}
	return enginetest.Catalog{
		sdk.EmbedStage("words", "", func(context.Context, sdk.Setup, none) (sdk.Embedder, error) { return nil, nil }),
		sdk.StoreStage("kept", "", func(context.Context, sdk.Setup, struct {
			Path sdk.Path `config:"path"`
		}) (sdk.Store, error) {
			return nil, nil
		}),
		sdk.SampleStage("asks", "", func(context.Context, sdk.Setup, service) (sdk.Sampler, error) { return nil, nil }, sdk.Network(),
			sdk.Addresses(func(c service) map[string]string {
				all := map[string]string{"": c.URL}
				maps.Copy(all, c.More)
				return all
			})),
		sdk.SampleStage("mute", "", func(context.Context, sdk.Setup, struct {
			Key string `config:"key"`
		}) (sdk.Sampler, error) {
			return nil, nil
		}, sdk.Network()),
		sdk.ElectStage("majority", "", func(context.Context, sdk.Setup, none) (sdk.Elector, error) { return nil, nil }),
	}
}

// TestWants has files of built-in stages want what they can.
func TestWants(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	for _, path := range []string{dir + "/rows.tsv", outside + "/rows.tsv", outside + "/diary"} {
		if err := os.WriteFile(path, []byte("text\tlabel\na\tb\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(outside+"/diary", dir+"/link.tsv"); err != nil {
		t.Fatal(err)
	}
	environment := map[string]string{
		"OPENAI_API_KEY": "key-of-openai", "OTHER_KEY": "another-key", "CITY": "somewhere", "RACFLOW_X": "x", "SERVER": "http://said.example:8080/v1", "RACFLOW_KEY": "own-key",
	}
	for name, c := range map[string]struct {
		config string // of the voter
		more   string // blocks in the pipeline
		source string
		store  string
		vars   map[string]string
		want   []Want
	}{
		"nothing":              {more: `enabled = false`},
		"OpenAI's key":         {config: `key = secret("OPENAI_API_KEY")`, want: []Want{{Hosts, "sends to api.openai.com", true}, {Secrets, "gives api.openai.com the secret OPENAI_API_KEY", true}}},
		"no key":               {config: `key = secret("NO_KEY", "")`, want: []Want{{Hosts, "sends to api.openai.com", false}}},
		"a key of the file":    {config: `key = "sk-of-the-author"`, want: []Want{{Hosts, "sends to api.openai.com", false}}},
		"another key":          {config: `key = secret("OTHER_KEY")`, want: []Want{{Hosts, "sends to api.openai.com", false}, {Secrets, "gives api.openai.com the secret OTHER_KEY", false}}},
		"OpenAI's key, astray": {config: "url = \"https://evil.example\"\nkey = secret(\"OPENAI_API_KEY\")", want: []Want{{Hosts, "sends to evil.example", false}, {Secrets, "gives evil.example the secret OPENAI_API_KEY", false}}},
		"a host that was said": {config: "url = env(\"SERVER\")\nkey = secret(\"OPENAI_API_KEY\")", want: []Want{{Hosts, "sends to said.example:8080", true}, {Secrets, "gives said.example:8080 the secret OPENAI_API_KEY", true}}},
		"its other secret":     {config: "url = env(\"SERVER\")\nkey = secret(\"OTHER_KEY\")", want: []Want{{Hosts, "sends to said.example:8080", true}, {Secrets, "gives said.example:8080 the secret OTHER_KEY", false}}},
		"racflow's own":        {config: "url = env(\"SERVER\")\nkey = secret(\"RACFLOW_KEY\")", want: []Want{{Hosts, "sends to said.example:8080", true}, {Secrets, "gives said.example:8080 the secret RACFLOW_KEY", true}}},
		"each its own": {config: "more = { b = \"https://b.example\" }\nkeys = { b = secret(\"OTHER_KEY\") }\nkey = secret(\"OPENAI_API_KEY\")", want: []Want{
			{Hosts, "sends to api.openai.com", true}, {Hosts, "sends to b.example", false}, {Secrets, "gives api.openai.com the secret OPENAI_API_KEY", true}, {Secrets, "gives b.example the secret OTHER_KEY", false},
		}},
		"a variable, two reads": {config: "key = secret(\"OPENAI_API_KEY\")\nfile = file(env(\"RACFLOW_Y\", \"" + outside + "/diary\")) == env(\"CITY\") ? \"x\" : \"" + outside + "/rows.tsv\"", want: []Want{
			{Hosts, "sends to api.openai.com", true}, {Secrets, "reads the variable CITY of the environment", false}, {Secrets, "gives api.openai.com the secret OPENAI_API_KEY", true},
			{Files, "reads " + outside + "/diary", false}, {Files, "reads " + outside + "/rows.tsv", false},
		}},
		"rows outside":           {more: `enabled = false`, source: outside + "/rows.tsv", want: []Want{{Files, "reads " + outside + "/rows.tsv", false}}},
		"rows by a link":         {more: `enabled = false`, source: "*.tsv", want: []Want{{Files, "reads " + outside + "/diary", false}}},
		"rows that were said":    {more: `enabled = false`, source: outside + "/rows.tsv", vars: map[string]string{"rows": outside + "/rows.tsv"}, want: []Want{{Files, "reads " + outside + "/rows.tsv", true}}},
		"a store outside":        {more: `enabled = false`, store: `config { path = "` + outside + `/kept" }`, want: []Want{{Files, "changes " + outside + "/kept", false}}},
		"services without names": {more: `use = "mute"`, config: `key = secret("OTHER_KEY")`, want: []Want{{Hosts, "calls services that the stage mute does not name", false}, {Secrets, "gives the stage mute the secret OTHER_KEY", false}}},
	} {
		t.Run(name, func(t *testing.T) {
			use := `use = "asks"`
			if strings.HasPrefix(c.more, "use") {
				use = ""
			}
			text := fmt.Sprintf(`
variable "rows" { default = "x" }
knowledge "k" {
  source { path = %q }
  embed { use = "words" }
  store {
    use = "kept"
    %s
  }
}
pipeline "p" {
  retrieve "r" { from = knowledge.k }
  sample "other" {
    use = "asks"
    enabled = false
    config { key = secret("UNSET") }
  }
  sample "s" {
    %s
    %s
    config {
      %s
    }
  }
}`, cmp.Or(c.source, "rows.tsv"), c.store, use, c.more, c.config)
			path := filepath.Join(dir, "p.hcl")
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			f, diags := pipeline.Load(t.Context(), path, pipeline.Options{Catalog: stages(), Dir: dir, Vars: c.vars, Getenv: func(name string) (string, bool) {
				value, ok := environment[name]
				return value, ok
			}})
			if diags.HasErrors() {
				t.Fatal(diags)
			}
			got := Wants(f)
			slices.SortFunc(got, func(a, b Want) int {
				return cmp.Or(slices.Index(Kinds, a.Kind)-slices.Index(Kinds, b.Kind), strings.Compare(a.Text, b.Text))
			})
			slices.SortFunc(c.want, func(a, b Want) int {
				return cmp.Or(slices.Index(Kinds, a.Kind)-slices.Index(Kinds, b.Kind), strings.Compare(a.Text, b.Text))
			})
			if len(got)+len(c.want) > 0 && !reflect.DeepEqual(got, c.want) {
				t.Errorf("it wants %+v, want %+v", got, c.want)
			}
		})
	}
}
