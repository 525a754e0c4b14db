package explain

import (
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/racflow/racflow/engine/governor"
	"github.com/racflow/racflow/sdk"
)

// reply adds what services replied about an item.
func (r *Run) reply(k *kept) {
	if k.seen == nil {
		return
	}
	for _, voter := range slices.Sorted(maps.Keys(k.seen.Requests)) {
		keys, missing := k.seen.Requests[voter], 0
		for _, key := range keys {
			text, ok := r.replyTo(voter, key)
			if !ok {
				missing++
				continue
			}
			k.Replies = append(k.Replies, Reply{voter, text})
		}
		if missing > 0 {
			k.lose("%d of %d replies to sample.%s: the response cache does not have them any more", missing, len(keys), voter)
		}
	}
}

// replyTo looks up one reply, of the voter or of one of its fallbacks.
func (r *Run) replyTo(voter, key string) (string, bool) {
	var k sdk.Key
	if n, err := hex.Decode(k[:], []byte(key)); err != nil || n != len(k) || r.replies == nil {
		return "", false
	}
	for _, s := range r.journal.Manifest.Stages {
		if name, _, _ := strings.Cut(s.Stage, ", "); name != "sample."+voter {
			continue
		}
		if value, ok := r.replies.Get(governor.KeyOf(sdk.KindSample, s.Use, k)); ok {
			return replyText(value), true
		}
	}
	return "", false
}

// replyText is what a model wrote, where a cached reply has that apart.
func replyText(reply []byte) string {
	var known struct{ Text *string }
	if json.Unmarshal(reply, &known) == nil && known.Text != nil {
		return *known.Text
	}
	return string(reply)
}
