package trust

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/knowledge/source"
	"github.com/racflow/racflow/engine/internal/process/confine/cage"
	"github.com/racflow/racflow/engine/internal/process/program"
	"github.com/racflow/racflow/sdk"
)

// Kind is a kind of what a file wants, by which it can be granted.
type Kind string

// The kinds.
const (
	Hosts   Kind = "hosts"   // to send anything to a host
	Secrets Kind = "secrets" // to give away a secret, or to read another variable of the environment
	Files   Kind = "files"   // to read or change a file outside of the folder
	Plugins Kind = "plugins" // to start a program of a third party, and what that reaches
)

// Kinds lists all kinds.
var Kinds = []Kind{Hosts, Secrets, Files, Plugins}

// Want is one thing that a file wants beyond its folder.
type Want struct {
	Kind Kind   `json:"kind"`
	Text string `json:"wants"` // "gives api.example.com the secret KEY"
	// Free says that nobody has to grant it: a person said so beside the file, or a key goes to its own service.
	Free bool `json:"free,omitempty"`
}

// Request asks whether a file may be used.
type Request struct {
	Path    string // of the file
	Folder  string // absolute; what is granted is granted to the files in it
	Content []byte // of the file
	Wants   []Want // all, also free ones
	Silent  bool   // nobody may be asked now
}

// New makes the request for a file.
func New(f *pipeline.File, silent bool) Request {
	r := Request{Path: f.Path, Folder: f.Folder(), Wants: Wants(f), Silent: silent}
	if src := f.Sources[f.Path]; src != nil {
		r.Content = src.Bytes
	}
	return r
}

// Wants lists what a file wants beyond its folder, with its variables as they are: for all of its pipelines and
// knowledge, without stages that are off. It starts nothing.
func Wants(f *pipeline.File) []Want {
	w := wants{file: f, folder: f.Folder(), said: f.Said()}
	for _, e := range f.Environment {
		if e.Set && !e.Secret && !e.Off && !e.Address && !strings.HasPrefix(e.Name, pipeline.OwnVariables) {
			w.add(Secrets, false, "reads the variable %s of the environment", e.Name)
		}
	}
	for _, path := range f.Reads {
		w.touches("reads", path)
	}
	for _, k := range f.Knowledge {
		for _, s := range k.Sources {
			w.source(s)
		}
		for _, s := range k.Stages() {
			w.stage(s)
		}
	}
	for _, p := range f.Pipelines {
		if p.Input != nil {
			w.source(*p.Input)
		}
		for _, s := range p.Processes() {
			w.stage(s)
		}
	}
	slices.SortStableFunc(w.all, func(a, b Want) int { return slices.Index(Kinds, a.Kind) - slices.Index(Kinds, b.Kind) })
	return w.all
}

type wants struct {
	file   *pipeline.File
	folder string
	said   []string
	all    []Want
}

// Start is the want to start a locked program.
func Start(name, source, version, hash string) Want {
	return Want{Kind: Plugins, Text: fmt.Sprintf("starts the plugin %s of %s, version %s, program %.12s", name, source, version, strings.TrimPrefix(hash, "sha256:"))}
}

func (w *wants) add(kind Kind, free bool, format string, args ...any) {
	w.want(Want{kind, fmt.Sprintf(format, args...), free})
}

func (w *wants) want(want Want) {
	if at := slices.IndexFunc(w.all, func(have Want) bool { return have.Text == want.Text }); at >= 0 {
		w.all[at].Free = w.all[at].Free && want.Free
		return
	}
	w.all = append(w.all, want)
}

// touches adds a path outside of the folder; of a link, where it leads.
func (w *wants) touches(how, path string) {
	if path == "" || path == "-" || pipeline.Inside(w.folder, path) {
		return
	}
	at := cage.Follow(path, func(string, string) {})
	w.add(Files, w.file.IsSaid(path), "%s %s", how, at)
}

func (w *wants) source(s pipeline.Source) {
	if s.Reviewed {
		w.touches("changes", s.Path)
		return
	}
	files, err := source.Files(s.Path)
	if s.Documents != nil || err != nil { // links out of a folder of documents are not followed
		files = []string{s.Path}
	}
	for _, path := range files {
		w.touches("reads", path)
	}
}

// stage adds what a stage sends, gets, reads and runs.
func (w *wants) stage(s *pipeline.Stage) {
	how := "reads"
	if s.Kind == sdk.KindStore {
		how = "changes"
	}
	for _, path := range pipeline.PathsIn(s.Info.Arguments, s.Config.Open) {
		w.touches(how, path)
	}
	if s.Program != nil {
		w.plugin(s)
		return
	}
	addresses := s.Info.Addresses(s.Config.Open)
	if s.Info.Network && addresses == nil {
		w.add(Hosts, false, "calls services that the stage %s does not name", s.Use)
	}
	keyed := map[string]bool{} // hosts that get their own key
	for _, named := range s.Config.Named {
		address, ok := addresses[named.Element]
		if !ok {
			address = addresses[""]
		}
		host := hostOf(address)
		if host == "" {
			w.add(Secrets, false, "gives the stage %s the secret %s", s.Use, named.Name)
			continue
		}
		its, known := ownHosts[named.Name]
		free := slices.Contains(its, host) || w.isSaid(host) && (known || strings.HasPrefix(named.Name, pipeline.OwnVariables))
		keyed[host] = keyed[host] || free
		w.add(Secrets, free, "gives %s the secret %s", host, named.Name)
	}
	for _, address := range addresses {
		if host := hostOf(address); host != "" {
			w.add(Hosts, keyed[host] || w.isSaid(host), "sends to %s", host)
		}
	}
}

// ownHosts holds the hosts of the services that keys are for, by the usual names of those keys.
var ownHosts = map[string][]string{
	"OPENAI_API_KEY": {"api.openai.com"}, "ANTHROPIC_API_KEY": {"api.anthropic.com"}, "COHERE_API_KEY": {"api.cohere.com"},
	"JINA_API_KEY": {"api.jina.ai"}, "VOYAGE_API_KEY": {"api.voyageai.com"}, "MILVUS_TOKEN": nil,
}

// isSaid reports whether a person named a host beside the file: that one, not one whose name begins or ends like it.
func (w *wants) isSaid(host string) bool {
	whole := regexp.MustCompile(`(^|[^\w.@-])` + regexp.QuoteMeta(host) + `($|[^\w.:-])`)
	return slices.ContainsFunc(w.said, whole.MatchString)
}

// hostOf returns the host of an address, with its port if that is written; empty: there is none.
func hostOf(address string) string {
	if u, err := url.Parse(address); err == nil && u.Host != "" {
		return u.Host
	}
	return address
}

// plugin adds what a third party's program is and reaches.
func (w *wants) plugin(s *pipeline.Stage) {
	p := s.Program
	if p.Origin == program.Locked {
		from := ""
		for _, r := range w.file.Required {
			if r.Name == p.Name {
				from = r.Source
			}
		}
		w.want(Start(p.Name, from, p.Version, p.Hash))
	}
	if p.Allow.Unconfined {
		w.add(Plugins, false, "lets the plugin %s do whatever you can, without confinement", p.Name)
	}
	for _, host := range p.Allow.Hosts {
		w.add(Plugins, w.isSaid(host), "lets the plugin %s reach %s", p.Name, host)
	}
	for _, path := range p.Allow.Read {
		if !pipeline.Inside(w.folder, path) {
			w.add(Plugins, false, "lets the plugin %s read %s", p.Name, path)
		}
	}
	for _, path := range p.Allow.Write {
		w.add(Plugins, false, "lets the plugin %s change %s", p.Name, path)
	}
	for _, named := range s.Config.Named {
		w.add(Secrets, false, "gives the plugin %s the secret %s", p.Name, named.Name)
	}
}
