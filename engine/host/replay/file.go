package replay

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/racflow/racflow/sdk"
	_ "github.com/racflow/racflow/sdk/proto/stagepb" // the messages
)

// File is a request that a stage failed on.
type File struct {
	Plugin  string          `json:"plugin"`
	Version string          `json:"version"`
	Hash    string          `json:"hash,omitempty"` // of the program; empty: a built-in stage
	Kind    sdk.Kind        `json:"kind"`
	Stage   string          `json:"stage"`  // its name in the plugin
	Config  json.RawMessage `json:"config"` // an object; secrets are masked
	Request Request         `json:"request"`
	How     string          `json:"how"` // what came of it
}

// Request is a call of the protocol.
type Request struct {
	Method  string          `json:"method"`  // "/racflow.stage.v2.Stage/Sample"
	Message json.RawMessage `json:"message"` // in protobuf's JSON form
}

// NewRequest makes a Request of a call; mask hides secrets in the JSON.
func NewRequest(method string, message proto.Message, mask func(string) string) (Request, error) {
	raw, err := protojson.Marshal(message)
	if err != nil {
		return Request{}, err
	}
	return Request{Method: method, Message: json.RawMessage(mask(string(raw)))}, nil
}

// Decode returns the message of the request, and an empty one for the reply.
func (r Request) Decode() (message, reply proto.Message, err error) {
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

// Read reads a file and checks that its request can be decoded.
func Read(path string) (File, error) {
	var f File
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
