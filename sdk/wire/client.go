package wire

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/proto/stagepb"
)

// This file is the engine's end of the connection. It shows a stage in another process as the Go
// interfaces of package sdk, and offers what the engine shares with the stage.
//
// A Conn is the connection to one process; any number of goroutines may call on it at the same time.
// A Stage turns typed calls into requests, and replies into results. A HostService answers the
// requests of plugins to the engine. The package does not start, watch or restart processes: that is
// the engine's work, and the conformance suite has no process at all.

type aloneKey struct{}

// Alone returns a context for calls that are sent while the plugin works on nothing else. A request
// that ends the process then ends no other request with it.
func Alone(ctx context.Context) context.Context { return context.WithValue(ctx, aloneKey{}, true) }

// IsAlone reports whether Alone made ctx.
func IsAlone(ctx context.Context) bool { return ctx.Value(aloneKey{}) != nil }

var (
	// ErrLost says that the connection broke before the reply came. The plugin may or may not have
	// done its work.
	ErrLost = errors.New("the plugin's process ended")
	// ErrUnsent says that the connection broke before the request was sent.
	ErrUnsent = errors.New("the plugin's process ended before the request was sent")
)

// Conn is the connection to a plugin. At most Window calls are in progress at a time; further calls
// wait for their turn.
type Conn struct {
	grpc      *grpc.ClientConn
	credits   *semaphore.Weighted
	done      chan struct{} // closed when the connection has broken
	answered  atomic.Int64
	abandoned atomic.Bool // a call ended before its reply, and Settle has not been called since
}

// NewConn takes over a connection on which a call has been answered. It lasts until the plugin ends,
// or until Close.
func NewConn(conn *grpc.ClientConn) *Conn {
	c := &Conn{grpc: conn, credits: semaphore.NewWeighted(Window), done: make(chan struct{})}
	go func() {
		// gRPC may answer the first call a moment before it says that it is connected.
		for _, now := range []connectivity.State{connectivity.Connecting, connectivity.Ready} {
			for conn.GetState() == now {
				conn.WaitForStateChange(context.Background(), now)
			}
		}
		close(c.done)
	}()
	return c
}

// Close ends the connection and every call on it.
func (c *Conn) Close() { _ = c.grpc.Close() }

// Done is closed when the connection has ended.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Ended reports whether the connection has ended.
func (c *Conn) Ended() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// Answered returns the number of calls that the plugin has answered.
func (c *Conn) Answered() int { return int(c.answered.Load()) }

// Alive asks the plugin for a sign of life. It returns the number of calls that the plugin still
// works on, although nobody waits for them any longer. Any answer is a sign of life, and so is a
// broken connection, which Done reports. Only the end of ctx is none.
func (c *Conn) Alive(ctx context.Context) (overdue int, ok bool) {
	reply, err := stagepb.NewStageClient(c.grpc).Alive(ctx, &stagepb.AliveRequest{})
	return int(reply.GetOverdue()), status.Code(err) != codes.DeadlineExceeded && ctx.Err() == nil
}

// Settle waits until the plugin no longer works on calls that nobody waits for, or until the
// connection has ended. It returns false if ctx ends first.
func (c *Conn) Settle(ctx context.Context) bool {
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		c.abandoned.Store(false)
		overdue, ok := c.Alive(ctx)
		if c.Ended() || ok && overdue == 0 {
			return true
		}
		c.abandoned.Store(true)
		select {
		case <-time.After(wait):
		case <-c.done:
			return true
		case <-ctx.Done():
			return false
		}
	}
}

// Invoke makes a unary call like grpc.ClientConn's Invoke, but with errors of package sdk. If Alone
// made ctx, the call waits until the plugin works on nothing else.
func (c *Conn) Invoke(ctx context.Context, method string, request, reply any, options ...grpc.CallOption) error {
	return c.Send(ctx, func() {}, method, request, reply, options...)
}

// Send is Invoke, and also calls sent once the call no longer has to wait.
func (c *Conn) Send(ctx context.Context, sent func(), method string, request, reply any, options ...grpc.CallOption) error {
	if size := proto.Size(request.(proto.Message)); size > MaxMessage {
		return tooLarge(size)
	}
	credits := int64(1)
	if IsAlone(ctx) {
		credits = Window
	}
	if err := c.acquire(ctx, credits); err != nil {
		return err
	}
	defer c.credits.Release(credits)
	if IsAlone(ctx) && c.abandoned.Load() && !c.Settle(ctx) {
		return Ended(ctx)
	}
	sent()
	return c.explain(ctx, method, c.grpc.Invoke(ctx, method, request, reply, options...))
}

func tooLarge(size int) error {
	return sdk.Invalid(SizeError(fmt.Sprintf("the request has %d MiB, more than the %d of a message; use smaller batches", size>>20, MaxMessage>>20)))
}

// SizeError says that a message is too large.
type SizeError string

func (e SizeError) Error() string { return string(e) }

// acquire waits for credits, for the end of ctx, or for the end of the connection.
func (c *Conn) acquire(ctx context.Context, credits int64) error {
	if !c.credits.TryAcquire(credits) {
		waiting, stop := context.WithCancel(ctx)
		defer stop()
		go func() {
			select {
			case <-c.done:
				stop()
			case <-waiting.Done():
			}
		}()
		if c.credits.Acquire(waiting, credits) != nil {
			if ctx.Err() != nil {
				return Ended(ctx)
			}
			return ErrUnsent
		}
	}
	if c.Ended() {
		c.credits.Release(credits)
		return ErrUnsent
	}
	return nil
}

// explain is Explain for a call on the connection. It closes a broken connection, so that Done
// reports it soon.
func (c *Conn) explain(ctx context.Context, method string, err error) error {
	err = Explain(ctx, c.grpc, method, err)
	switch code := sdk.CodeOf(err); {
	case err == nil:
		c.answered.Add(1)
	case errors.Is(err, ErrLost):
		c.Close()
		<-c.done
	case code == sdk.CodeDeadline || code == sdk.CodeCancelled:
		c.abandoned.Store(true)
	}
	return err
}

// Explain turns the error of a call on a connection to a plugin into an error of package sdk, ErrLost
// or a StatusError; nil stays nil.
func Explain(ctx context.Context, conn *grpc.ClientConn, method string, err error) error {
	code := status.Code(err)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return Ended(ctx)
	case code == codes.DeadlineExceeded: // the plugin's clock was ahead of this one
		return &sdk.Error{Code: sdk.CodeDeadline, Err: context.DeadlineExceeded}
	case code == codes.ResourceExhausted:
		return sdk.Invalid(SizeError(fmt.Sprintf("the reply is larger than the %d MiB of a message; use smaller batches", MaxMessage>>20)))
	}
	// The status may come from the plugin, or from gRPC if the connection broke meanwhile. Another
	// call finds out.
	_, broken := stagepb.NewStageClient(conn).Alive(ctx, &stagepb.AliveRequest{})
	switch status.Code(broken) {
	case codes.Unavailable, codes.Canceled:
		if ctx.Err() != nil {
			return Ended(ctx)
		}
		return ErrLost
	}
	return &StatusError{Method: method, Code: code, Message: Cut(status.Convert(err).Message())}
}

// StatusError says that a plugin answered a call with a gRPC status instead of a reply. The plugin
// has a bug, or lacks a method.
type StatusError struct {
	Method  string
	Code    codes.Code
	Message string // as the plugin wrote it
}

func (e *StatusError) Error() string {
	if e.Code == codes.Unimplemented {
		return fmt.Sprintf("the plugin has no method %s, which its description promises; update the plugin", e.Method)
	}
	return fmt.Sprintf("the plugin answered %s with the status %s (%s); what goes wrong with the work belongs into a reply's failure", e.Method, e.Code, e.Message)
}

// Unwrap gives the error its code: if a method is missing, no retry helps.
func (e *StatusError) Unwrap() error {
	if e.Code == codes.Unimplemented {
		return sdk.Invalid(errors.ErrUnsupported)
	}
	return nil
}

// Ended returns the error of a call whose context ended: cancelled or out of time.
func Ended(ctx context.Context) error {
	code := sdk.CodeCancelled
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		code = sdk.CodeDeadline
	}
	return &sdk.Error{Code: code, Err: context.Cause(ctx)}
}

// MaxState is the largest total size of a fitted embedder's files, in bytes.
const MaxState = 64 << 10

// State returns, as one packed value, the files that Fit wrote into the stage's folder. It can be
// stored with the vectors that depend on it.
func (s *Stage) State() ([]byte, error) {
	root, err := os.OpenRoot(s.StateDir) // the stage may turn a file into a link meanwhile
	if err != nil {
		return nil, fmt.Errorf("read what was learnt: %w", err)
	}
	defer root.Close() //nolint:errcheck // it was only read
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return nil, fmt.Errorf("read what was learnt: %w", err)
	}
	var packed bytes.Buffer
	w, size := tar.NewWriter(&packed), 0
	for _, e := range entries {
		if !e.Type().IsRegular() {
			continue
		}
		content, err := root.ReadFile(e.Name())
		if err != nil {
			return nil, fmt.Errorf("read what was learnt: %w", err)
		}
		if size += len(content); size > MaxState {
			return nil, fmt.Errorf("%s has written more than %d bytes into its folder while it was fitted", s.name(), MaxState)
		}
		header := &tar.Header{Name: e.Name(), Mode: 0o600, Size: int64(len(content))}
		if err = w.WriteHeader(header); err == nil {
			_, err = w.Write(content)
		}
		if err != nil {
			return nil, fmt.Errorf("pack what was learnt: %w", err)
		}
	}
	if size == 0 {
		return nil, fmt.Errorf("%s has written nothing into its folder while it was fitted", s.name())
	}
	return packed.Bytes(), w.Close()
}

// StateDir returns a folder below dir for an embedder that fits. It has the files that State packed,
// or is new if there is no state yet. Several processes may make the same folder at once.
func StateDir(dir string, state []byte) (string, error) {
	if state == nil {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return "", err
		}
		return os.MkdirTemp(dir, "new-")
	}
	sum := sha256.Sum256(state)
	dir = filepath.Join(dir, "fit-"+hex.EncodeToString(sum[:8]))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	return dir, unpack(dir, state)
}

func unpack(dir string, state []byte) error {
	for r := tar.NewReader(bytes.NewReader(state)); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		var content []byte
		if err == nil {
			content, err = io.ReadAll(r)
		}
		if err != nil {
			return fmt.Errorf("what the embedder has learnt cannot be read; rebuild the knowledge: %w", err)
		}
		path := filepath.Join(dir, filepath.Base(header.Name))
		if there, err := os.ReadFile(path); err == nil && bytes.Equal(there, content) {
			continue
		}
		f, err := os.CreateTemp(dir, ".new-*")
		if err != nil {
			return err
		}
		_, err = f.Write(content)
		if err = errors.Join(err, f.Close()); err == nil {
			err = os.Rename(f.Name(), path)
		}
		if err != nil {
			_ = os.Remove(f.Name())
			return fmt.Errorf("write what the embedder has learnt: %w", err)
		}
	}
}
