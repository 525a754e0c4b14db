package trust

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/process/confine"
	"github.com/racflow/racflow/engine/internal/process/confine/cage"
	"github.com/racflow/racflow/engine/internal/process/program"
	"github.com/racflow/racflow/engine/internal/source"
	"github.com/racflow/racflow/sdk"
)

type wants struct {
	file   *pipeline.File
	folder string
	all    []Want
}

// Kind is a kind of right that a file asks for, and that a person grants.
type Kind string

// The kinds.
const (
	Hosts   Kind = "hosts"   // to send anything to a host
	Secrets Kind = "secrets" // to send a secret elsewhere, or to read another environment variable
	Files   Kind = "files"   // to read or change a file outside of the folder
	Plugins Kind = "plugins" // to start a third party's program, and what it accesses
)

// Kinds lists all kinds.
var Kinds = []Kind{Hosts, Secrets, Files, Plugins}

// Want is one thing that a file wants beyond its folder.
type Want struct {
	Kind Kind   `json:"kind"`
	Text string `json:"wants"` // "gives api.example.com the secret KEY"
	// Free says that the want needs no grant: a person typed it outside of the file, or a key goes to its own service.
	Free bool `json:"free,omitempty"`
	// Value is a digest of the part that the text does not show, since it comes from the environment. Another value
	// makes another want.
	Value string `json:"-"`

	link bool // the path is in the folder, and a link leads out of it
}

// Request asks whether a file may be used.
type Request struct {
	Path    string // of the file
	Folder  string // absolute; a grant is for all files in it
	Content []byte // of the file
	Wants   []Want // all wants, including free ones
	Silent  bool   // nobody may be asked now
}

// New makes the request for a file, and for the same file with other values of its variables.
func New(f *pipeline.File, silent bool, also ...*pipeline.File) Request {
	return request(f, silent, Wants(f, also...))
}

// OfReads makes the request for what expressions of a file read, if nothing else is known about the file.
func OfReads(f *pipeline.File, silent bool) Request {
	w := wants{file: f, folder: f.Folder()}
	w.reads()
	return request(f, silent, w.sorted())
}

func request(f *pipeline.File, silent bool, all []Want) Request {
	r := Request{Path: f.Path, Folder: f.Folder(), Wants: all, Silent: silent}
	if src := f.Sources[f.Path]; src != nil {
		r.Content = src.Bytes
	}
	return r
}

// Wants lists what a file wants beyond its folder: for all of its pipelines, expectations and knowledge, without
// disabled stages. f has the current values of the variables; also are the same file with other values. Wants starts
// nothing.
func Wants(f *pipeline.File, also ...*pipeline.File) []Want {
	w := wants{folder: f.Folder()}
	for _, f := range append([]*pipeline.File{f}, also...) {
		w.file = f
		w.addFile(f)
	}
	return w.sorted()
}

func (w *wants) sorted() []Want {
	slices.SortStableFunc(w.all, func(a, b Want) int { return slices.Index(Kinds, a.Kind) - slices.Index(Kinds, b.Kind) })
	return w.all
}

// reads adds what expressions of the file read.
func (w *wants) reads() {
	for _, e := range w.file.Environment {
		if e.Set && !e.Secret && !e.Off && !e.Open {
			w.add(Secrets, "reads the variable %s of the environment", e.Name)
		}
	}
	for _, path := range w.file.Reads {
		w.touches("reads", path, w.file.ReadOrigin(path))
	}
}

func (w *wants) addFile(f *pipeline.File) {
	w.reads()
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
		for _, e := range p.Expects {
			if e.Enabled && e.Input != nil {
				w.source(*e.Input)
			}
		}
		for _, s := range p.Processes() {
			w.stage(s)
		}
	}
}

// Start is the want to start a locked program.
func Start(name, source, version, hash string) Want {
	return Want{Kind: Plugins, Text: fmt.Sprintf("starts the plugin %s of %s, version %s, program %.12s", name, source, version, strings.TrimPrefix(hash, "sha256:"))}
}

func (w *wants) add(kind Kind, format string, args ...any) {
	w.want(Want{Kind: kind, Text: fmt.Sprintf(format, args...)})
}

func (w *wants) want(want Want) {
	if at := slices.IndexFunc(w.all, func(have Want) bool { return have.Text == want.Text && have.Value == want.Value }); at >= 0 {
		w.all[at].Free = w.all[at].Free && want.Free
		return
	}
	w.all = append(w.all, want)
}

// hidden describes a thing that comes from the environment, or from a file outside of the folder. It returns a text and
// a digest of the value. The text contains the expression, so that people can find out what the thing is.
func hidden(thing, value string, o pipeline.Origin) (text, digest string) {
	return fmt.Sprintf("the %s that %s gives (%s)", thing, strings.Join(o.Hidden(), " and "), o.Text), fmt.Sprintf("%x", sha256.Sum256([]byte(value)))
}

// touches adds a path outside of the folder; for a link, its target.
func (w *wants) touches(how, path string, o pipeline.Origin) {
	if path == "" || path == "-" || pipeline.Inside(w.folder, path) {
		return
	}
	want := Want{Kind: Files, Text: cage.Follow(path, func(string, string) {}), Free: w.file.IsSaid(path, o), link: isBelow(w.folder, path) || isBelow(filepath.Dir(w.file.Path), path)}
	if len(o.Hidden()) > 0 {
		want.Text, want.Value = hidden("file", want.Text, o)
	}
	want.Text = how + " " + want.Text
	w.want(want)
}

// isBelow reports whether a path lies in a folder, without following links.
func isBelow(folder, path string) bool {
	at, err := filepath.Abs(folder)
	rel, failed := filepath.Rel(at, path)
	return err == nil && failed == nil && filepath.IsLocal(rel)
}

func (w *wants) source(s pipeline.Source) {
	if s.Reviewed {
		w.touches("changes", s.Path, s.Origin)
		return
	}
	files, err := source.Files(s.Path)
	if s.Documents != nil || err != nil { // links out of a folder of documents are not followed
		files = []string{s.Path}
	}
	for _, path := range files {
		w.touches("reads", path, s.Origin)
	}
}

// stage adds what a stage sends, gets, reads and runs.
func (w *wants) stage(s *pipeline.Stage) {
	how := "reads"
	if s.Kind == sdk.KindStore {
		how = "changes"
	}
	for _, a := range s.Info.Arguments {
		for _, path := range pipeline.PathsIn([]sdk.Argument{a}, s.Config.Open) {
			w.touches(how, path, s.Config.Origins[a.Name])
		}
	}
	if s.Program != nil {
		w.plugin(s)
		return
	}
	addresses := s.Info.Addresses(s.Config.Open)
	if s.Info.Network && addresses == nil {
		w.add(Hosts, "calls services that the stage %s does not name", s.Use)
	}
	keyed := map[string]bool{} // hosts that get their own key
	for _, named := range s.Config.Named {
		address, ok := addresses[named.Element]
		if !ok {
			address = addresses[""]
		}
		if address == "" {
			w.add(Secrets, "gives the stage %s the secret %s", s.Use, named.Name)
			continue
		}
		h := hostOf(address, s.Config)
		its, known := ownHosts[named.Name]
		isOwn := h.scheme == "https" && slices.Contains(its, h.host)
		keyed[h.String()] = keyed[h.String()] || isOwn
		w.want(Want{Kind: Secrets, Text: fmt.Sprintf("gives %s the secret %s", h.text, named.Name), Value: h.digest, Free: isOwn || h.isSaid() && (known || pipeline.IsOwn(named.Name))})
	}
	for _, address := range addresses {
		if address == "" {
			continue
		}
		h := hostOf(address, s.Config)
		text := "sends to " + h.text
		if h.isOpen() && len(h.origin.Private) == 0 {
			text += " without encryption"
		}
		w.want(Want{Kind: Hosts, Text: text, Value: h.digest, Free: (keyed[h.String()] || h.isSaid()) && !isForeign(s.Config, h)})
	}
}

// isForeign reports whether the file determines by whose account a host is used. For this machine only headers and
// bodies count, since a local server often requires some key, whichever it is.
func isForeign(c pipeline.Config, h host) bool {
	return slices.ContainsFunc(c.Foreign, func(name string) bool { return !h.isHere() || slices.Contains(pipeline.Accounts, name) })
}

// ownHosts holds the hosts of the services to which keys belong, by the usual names of the keys.
var ownHosts = map[string][]string{
	"OPENAI_API_KEY": {"api.openai.com"}, "TYPESAFE_API_KEY": {"api.typesafe.ai"}, "ANTHROPIC_API_KEY": {"api.anthropic.com"}, "COHERE_API_KEY": {"api.cohere.com"},
	"JINA_API_KEY": {"api.jina.ai"}, "VOYAGE_API_KEY": {"api.voyageai.com"}, "MILVUS_TOKEN": nil,
}

// host is a destination of data.
type host struct {
	scheme, host string // the host with its port, if that is not the scheme's; a scheme is https, http or empty
	address      string
	origin       pipeline.Origin
	text, digest string // for people; digest is of what the text does not show
}

// ports are the default ports of schemes.
var ports = map[string]string{"https": ":443", "http": ":80"}

// hostOf parses an address in a config. An encrypted address counts as https.
func hostOf(address string, c pipeline.Config) host {
	h := host{address: address, host: address}
	if u, err := url.Parse(address); err == nil && u.Host != "" {
		h.scheme, h.host = u.Scheme, strings.ToLower(u.Host)
	}
	if port := ports[h.scheme]; port != "" {
		h.host = strings.TrimSuffix(h.host, port)
	}
	var values map[string]json.RawMessage
	_ = json.Unmarshal(c.Open, &values) // made by the loader
	if h.scheme == "" && string(values["tls"]) == "true" {
		h.scheme = "https"
	}
	for argument, o := range c.Origins {
		if strings.Contains(strings.ToLower(string(values[argument])), h.name()) {
			h.origin.Said, h.origin.Whole = append(h.origin.Said, o.Said...), append(h.origin.Whole, o.Whole...)
			if len(o.Hidden()) > 0 {
				h.origin.Private, h.origin.Text = o.Hidden(), argument+" = "+o.Text
			}
		}
	}
	h.text = h.String()
	if len(h.origin.Private) > 0 {
		h.text, h.digest = hidden("host", h.text, h.origin)
	}
	return h
}

// String returns the host, with its scheme if that sends data unencrypted from this machine.
func (h host) String() string {
	if h.isOpen() && h.scheme != "" {
		return h.scheme + "://" + h.host
	}
	return h.host
}

// isOpen reports whether others can read what is sent.
func (h host) isOpen() bool { return h.scheme != "https" && !h.isHere() }

// isHere reports whether the host is this machine.
func (h host) isHere() bool { return confine.ThisMachine(h.host) }

// name returns the host without its port.
func (h host) name() string {
	if name, _, err := net.SplitHostPort(h.host); err == nil {
		return name
	}
	return strings.Trim(h.host, "[]")
}

// isSaid reports whether a person named the host outside of the file: see isTyped.
func (h host) isSaid() bool {
	whole := func(text string) bool { return strings.TrimRight(text, "/") == strings.TrimRight(h.address, "/") }
	return slices.ContainsFunc(h.origin.Whole, whole) ||
		slices.ContainsFunc(h.origin.Said, func(text string) bool { return isTyped(text, h) })
}

// isTyped reports whether a text names exactly this host, not a host whose name begins or ends like it. To allow
// sending without encryption, the text must say so, by the scheme or by a port.
func isTyped(text string, h host) bool {
	forms := regexp.QuoteMeta(h.scheme + "://")
	if _, _, err := net.SplitHostPort(h.host); err == nil || !h.isOpen() {
		forms += `|^|[^\w.@/-]`
	}
	return regexp.MustCompile(`(?i)(` + forms + `)` + regexp.QuoteMeta(h.host) + `(` + ports[h.scheme] + `)?($|[^\w.:@-])`).MatchString(text)
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
		w.add(Plugins, "lets the plugin %s do whatever you can, without confinement", p.Name)
	}
	for _, name := range p.Allow.Hosts {
		w.add(Plugins, "lets the plugin %s reach %s", p.Name, name)
	}
	for _, path := range p.Allow.Read {
		if !pipeline.Inside(w.folder, path) {
			w.add(Plugins, "lets the plugin %s read %s", p.Name, path)
		}
	}
	for _, path := range p.Allow.Write {
		w.add(Plugins, "lets the plugin %s change %s", p.Name, path)
	}
	for _, named := range s.Config.Named {
		w.add(Secrets, "gives the plugin %s the secret %s", p.Name, named.Name)
	}
}
