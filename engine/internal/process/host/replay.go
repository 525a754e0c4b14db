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
	_ "github.com/racflow/racflow/sdk/proto/stagepb" // registers the messages
)

// This file saves the requests that made stages fail, so that a plugin's author can send them
// again: `racflow plugin verify --replay FILE`.
//
// A file holds one request, cut down to the row to blame if that was found, with the stage, its
// config and the result. Callers mask secrets before they write a file, so that people can send it
// to each other. It does contain the texts of rows.
//
// A run writes only a few files, because one fault usually fails many requests. The package starts
// nothing.

// ReplayFile is a saved request that made a stage fail.
type ReplayFile struct {
	Plugin  string          `json:"plugin"`
	Version string          `json:"version"`
	Hash    string          `json:"hash,omitempty"` // of the program; empty: a built-in stage
	Kind    sdk.Kind        `json:"kind"`
	Stage   string          `json:"stage"`  // its name in the plugin
	Config  json.RawMessage `json:"config"` // an object with masked secrets
	Request ReplayRequest   `json:"request"`
	How     string          `json:"how"` // the result, for people
}

// ReplayRequest is a call of the protocol.
type ReplayRequest struct {
	Method  string          `json:"method"`  // "/racflow.stage.v2.Stage/Sample"
	Message json.RawMessage `json:"message"` // in protobuf's JSON form
}

// NewReplayRequest encodes a call as a ReplayRequest; mask hides secrets in the JSON.
func NewReplayRequest(method string, message proto.Message, mask func(string) string) (ReplayRequest, error) {
	raw, err := protojson.Marshal(message)
	if err != nil {
		return ReplayRequest{}, err
	}
	return ReplayRequest{Method: method, Message: json.RawMessage(mask(string(raw)))}, nil
}

// Decode returns the message of the request, and an empty message for the reply.
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
	// MaxReplays limits the number of files of a run.
	MaxReplays = 20
	// largest is the maximum size of a file in bytes. A larger request is not saved.
	largest = 1 << 20
)

// Replays writes files into the folder of a run, once Into has named one. Its methods are safe for
// concurrent use.
type Replays struct {
	mu  sync.Mutex
	dir string
}

// Into sets the folder, which is created with its first file.
func (f *Replays) Into(dir string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dir = dir
}

// Add writes a file for a stage, such as "sample.mine", and returns its path; empty: it was not
// written, because it is too large, the run has MaxReplays, or there is no folder yet.
func (f *Replays) Add(stage string, file ReplayFile) (path string, err error) {
	raw, err := json.MarshalIndent(file, "", "  ")
	if err != nil || len(raw) > largest {
		return "", err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	made, _ := os.ReadDir(f.dir) // also by the run that this one resumes
	if f.dir == "" || len(made) >= MaxReplays {
		return "", nil
	}
	if err := disk.MakeFolder(f.dir); err != nil {
		return "", err
	}
	for n := 1; err == nil; n++ {
		path = filepath.Join(f.dir, fmt.Sprintf("%s-%d.json", stage, n))
		_, err = os.Lstat(path)
	}
	return path, disk.WriteFile(path, append(raw, '\n'), false)
}

// ErrRestarted says that a process ended with uncommitted changes, or during a fit, and that these
// are lost. The caller of a store opens the collection again and repeats all changes since the last
// commit; the caller of a fit starts it again.
var ErrRestarted = errors.New("the stage's process was restarted and what was not committed is lost")

// replayLog records the state that a process would lose if it ended: the open collections of a
// store.
type replayLog struct {
	mu       sync.Mutex
	attached string // ID of the attached collection of another program; empty: none
	open     map[string]*stagepb.OpenCollectionRequest
	noted    map[string]bool // open collections whose last commit has a note
	dirty    map[string]bool // collections with uncommitted changes
	lost     map[string]bool // collections whose uncommitted changes ended with their process
}

func newReplayLog() *replayLog {
	return &replayLog{open: map[string]*stagepb.OpenCollectionRequest{}, noted: map[string]bool{}, dirty: map[string]bool{}, lost: map[string]bool{}}
}

// before records a request that is about to be sent, or refuses one that depends on lost changes.
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

// after records a request that has succeeded.
func (l *replayLog) after(request, reply any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch req := request.(type) {
	case *stagepb.AttachRequest:
		l.attached = cmp.Or(l.attached, reply.(*stagepb.AttachReply).GetAttached().GetId()) // later calls only look for changes
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

// restarted records that the process has ended and returns the collections that the next process
// has to open.
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

// gone reports whether somebody has removed a collection since the previous process opened it: its
// note is missing.
func (l *replayLog) gone(open *stagepb.OpenCollectionRequest, now *stagepb.Collection) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.noted[open.GetCollection()] && len(now.GetNote()) == 0
}

// attachment returns the ID of the attached collection, which the next process has to attach.
func (l *replayLog) attachment() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.attached
}

// changeOf returns the collection that a request changes, and whether the end of the process would undo the change.
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
