package host

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/racflow/racflow/engine/internal/process/disk"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/proto/stagepb"
	_ "github.com/racflow/racflow/sdk/proto/stagepb" // the messages
)

// This file keeps the requests that stages failed on, so that the author of a
// plugin can send them again: `racflow plugin verify --replay FILE`.
//
// A file has one request, cut down to the row to blame where that was found, with the
// stage and the config that it went to, and what came of it. Secrets are not in it:
// whoever writes one has masked them, so that it can be sent to somebody. The texts of
// rows are.
//
// A run has a few files at most: what fails in one way fails often. The package does
// not start anything.

// ReplayFile is a request that a stage failed on.
type ReplayFile struct {
	Plugin  string          `json:"plugin"`
	Version string          `json:"version"`
	Hash    string          `json:"hash,omitempty"` // of the program; empty: a built-in stage
	Kind    sdk.Kind        `json:"kind"`
	Stage   string          `json:"stage"`  // its name in the plugin
	Config  json.RawMessage `json:"config"` // an object; secrets are masked
	Request ReplayRequest   `json:"request"`
	How     string          `json:"how"` // what came of it
}

// ReplayRequest is a call of the protocol.
type ReplayRequest struct {
	Method  string          `json:"method"`  // "/racflow.stage.v2.Stage/Sample"
	Message json.RawMessage `json:"message"` // in protobuf's JSON form
}

// NewReplayRequest makes a ReplayRequest of a call; mask hides secrets in the JSON.
func NewReplayRequest(method string, message proto.Message, mask func(string) string) (ReplayRequest, error) {
	raw, err := protojson.Marshal(message)
	if err != nil {
		return ReplayRequest{}, err
	}
	return ReplayRequest{Method: method, Message: json.RawMessage(mask(string(raw)))}, nil
}

// Decode returns the message of the request, and an empty one for the reply.
func (r ReplayRequest) Decode() (message, reply proto.Message, err error) {
	name := strings.ReplaceAll(strings.TrimPrefix(r.Method, "/"), "/", ".")
	found, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(name))
	method, ok := found.(protoreflect.MethodDescriptor)
	if err != nil || !ok || method.IsStreamingClient() || method.IsStreamingServer() {
		return nil, nil, fmt.Errorf("the method %q is none that can be called again", r.Method)
	}
	in, err := protoregistry.GlobalTypes.FindMessageByName(method.Input().FullName())
	if err != nil {
		return nil, nil, err
	}
	out, err := protoregistry.GlobalTypes.FindMessageByName(method.Output().FullName())
	if err != nil {
		return nil, nil, err
	}
	message, reply = in.New().Interface(), out.New().Interface()
	if err := protojson.Unmarshal(r.Message, message); err != nil {
		return nil, nil, fmt.Errorf("the message of %s: %w", r.Method, err)
	}
	return message, reply, nil
}

// ReadReplay reads a file and checks that its request can be decoded.
func ReadReplay(path string) (ReplayFile, error) {
	var f ReplayFile
	raw, err := os.ReadFile(path)
	if err != nil {
		return f, err
	}
	if err := json.Unmarshal(raw, &f); err != nil {
		return f, fmt.Errorf("%s is not a request to replay: %w", path, err)
	}
	if f.Kind == "" || f.Stage == "" {
		return f, fmt.Errorf("%s is not a request to replay: it names no stage", path)
	}
	if _, _, err := f.Request.Decode(); err != nil {
		return f, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}

const (
	// MaxReplays is how many files a run has at most.
	MaxReplays = 20
	// largest is how many bytes a file has at most. A larger request gets no file.
	largest = 1 << 20
)

// Replays writes files into the folder of a run. Those that come before there is one, as
// knowledge is built, are held until then. It may be used by several goroutines at once.
type Replays struct {
	mu   sync.Mutex
	dir  string // empty: not known yet
	held []named
	made int
}

type named struct {
	stage   string
	content []byte
}

// Into names the folder, which is made once there is a file for it. It returns an error where those
// that were held could not be written.
func (f *Replays) Into(dir string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	before, _ := filepath.Glob(filepath.Join(dir, "*.json")) // of a run that is resumed
	f.dir, f.made = dir, len(before)
	held := f.held
	f.held = nil
	for _, one := range held {
		if _, err := f.write(one); err != nil {
			return err
		}
	}
	return nil
}

// Full reports whether there is room for no other file.
func (f *Replays) Full() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.made+len(f.held) >= MaxReplays
}

// Add writes a file for a stage, as "sample.mine", and returns its path; empty: it is not
// written, or not yet.
func (f *Replays) Add(stage string, file ReplayFile) (path string, err error) {
	raw, err := json.MarshalIndent(file, "", "  ")
	if err != nil || len(raw) > largest {
		return "", err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	one := named{stage, append(raw, '\n')}
	switch {
	case f.made+len(f.held) >= MaxReplays:
		return "", nil
	case f.dir == "":
		f.held = append(f.held, one)
		return "", nil
	}
	return f.write(one)
}

// write writes one under the next free name of its stage.
func (f *Replays) write(one named) (path string, err error) {
	if f.made >= MaxReplays {
		return "", nil
	}
	if err := disk.MakeFolder(f.dir); err != nil {
		return "", err
	}
	for n := 1; ; n++ {
		path = filepath.Join(f.dir, fmt.Sprintf("%s-%d.json", one.stage, n))
		if _, err := os.Lstat(path); err == nil {
			continue
		}
		f.made++
		return path, disk.WriteFile(path, one.content, false)
	}
}

// ErrRestarted says that a process ended with changes that were not committed,
// or while it was fitted, and that they are lost. A store's caller opens the collection
// again and repeats all changes since the last commit; a fit is begun again.
var ErrRestarted = errors.New("the stage's process was restarted and what was not committed is lost")

// replayLog knows what a process was given and would forget if it ended: the
// collections of a store.
type replayLog struct {
	mu       sync.Mutex
	attached string // ID of the collection that another program makes; empty: none is attached
	open     map[string]*stagepb.OpenCollectionRequest
	noted    map[string]bool // open collections whose last commit has a note
	dirty    map[string]bool // collections with changes that are not committed
	lost     map[string]bool // the process that knew the changes has ended
}

func newReplayLog() *replayLog {
	return &replayLog{open: map[string]*stagepb.OpenCollectionRequest{}, noted: map[string]bool{}, dirty: map[string]bool{}, lost: map[string]bool{}}
}

// before notes a request that is about to be sent, or refuses one that builds
// on what is lost.
func (l *replayLog) before(request any) error {
	collection, changes := changeOf(request)
	if !changes {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lost[collection] {
		return ErrRestarted
	}
	l.dirty[collection] = true
	return nil
}

// after notes a request that has succeeded.
func (l *replayLog) after(request, reply any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch req := request.(type) {
	case *stagepb.AttachRequest:
		l.attached = cmp.Or(l.attached, reply.(*stagepb.AttachReply).GetAttached().GetId()) // a later call only looks for changes
	case *stagepb.OpenCollectionRequest:
		c := req.GetCollection()
		l.open[c] = req
		l.noted[c] = len(reply.(*stagepb.OpenCollectionReply).GetCollection().GetNote()) > 0
		delete(l.lost, c)
		delete(l.dirty, c)
	case *stagepb.CommitRequest:
		delete(l.dirty, req.GetCollection())
		l.noted[req.GetCollection()] = len(req.GetNote()) > 0
	case *stagepb.DropRequest:
		delete(l.dirty, req.GetCollection())
		delete(l.lost, req.GetCollection())
		delete(l.open, req.GetCollection())
	}
}

// restarted notes that the process has ended and returns the collections that
// the next one has to open.
func (l *replayLog) restarted() []*stagepb.OpenCollectionRequest {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.dirty {
		l.lost[c] = true
	}
	clear(l.dirty)
	var open []*stagepb.OpenCollectionRequest
	for _, o := range l.open {
		open = append(open, o)
	}
	return open
}

// gone reports that a collection is not what it was when the process before
// opened it: its note is not there any more, so somebody has removed it.
func (l *replayLog) gone(open *stagepb.OpenCollectionRequest, now *stagepb.Collection) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.noted[open.GetCollection()] && len(now.GetNote()) == 0
}

// attachment is the ID of the attached collection, which the next process has to attach.
func (l *replayLog) attachment() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.attached
}

// changeOf says which collection a request changes in a way that an end of the process undoes.
func changeOf(request any) (collection string, changes bool) {
	switch req := request.(type) {
	case *stagepb.PutRequest:
		return req.GetCollection(), true
	case *stagepb.DeleteRequest:
		return req.GetCollection(), true
	case *stagepb.CommitRequest:
		return req.GetCollection(), true
	}
	return "", false
}
