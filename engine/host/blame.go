package host

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/racflow/racflow/engine/host/replay"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/proto/stagepb"
	"github.com/racflow/racflow/sdk/wire"
)

// Replays are the requests that stages failed on, each cut down to the row to blame.
func (h *Host) Replays() *replay.Files { return &h.replays }

// blame keeps a request with a single row that the stage failed on, or any with why it
// is to blame.
func (p caller) blame(ctx context.Context, method string, request any, why error) {
	if wire.IsBlamed(ctx) && why != nil {
		p.Nonsense(method, request.(proto.Message), why)
	}
}

// Nonsense implements wire.Witness.
func (p caller) Nonsense(method string, request proto.Message, why error) {
	files, secrets := &p.host.replays, p.out.secrets
	if files.Full() {
		return
	}
	mask := func(text string) string { return redactJSON(text, secrets.Result) }
	kept, err := replay.NewRequest(method, request, mask)
	if err == nil {
		name, version, _ := strings.Cut(strings.TrimPrefix(p.title, p.name()+": plugin "), " ")
		config := cmp.Or(string(p.spec.Config), "{}")
		var path string
		path, err = files.Add(p.name(), replay.File{
			Plugin: name, Version: version, Hash: p.plugin.hash, Kind: p.spec.Kind, Stage: p.spec.Use[strings.LastIndex(p.spec.Use, "/")+1:],
			Config: json.RawMessage(mask(config)), Request: kept, How: secrets.Message(why.Error()),
		})
		if path != "" {
			p.out.log.Info("the request that it failed on can be sent again with: racflow plugin verify --replay "+path, "plugin", name)
		}
	}
	if err != nil {
		p.out.log.Warn("a request that it failed on could not be kept", "error", err)
	}
}

// failed is what a reply says of a failure that the stage does not account for; nil: nothing.
func failed(answer failing) error {
	if f := answer.GetFailure(); isInternal(f) {
		return errFailed(f.GetMessage())
	}
	if rows, ok := answer.(interface{ GetErrors() []*stagepb.RowError }); ok {
		for _, e := range rows.GetErrors() {
			if f := e.GetFailure(); isInternal(f) {
				return errFailed(f.GetMessage())
			}
		}
	}
	return nil
}

// isInternal reports whether a failure is a mistake of the stage itself, or says nothing else.
func isInternal(f *stagepb.Failure) bool {
	return f != nil && sdk.CodeOf(wire.DecodeFailure(f)) == sdk.CodeInternal
}

type errFailed string

func (e errFailed) Error() string { return string(e) }
