package bus

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/racflow/racflow/engine/cluster/natstest"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// restricted is a server whose users caller and worker have what Permissions says, and no more.
func restricted(t *testing.T) *natstest.Servers {
	return natstest.Start(t, 1, func(_ int, o *server.Options) {
		for _, role := range []Role{Caller, Worker} {
			p := Permissions(role)
			user := &server.User{Username: string(role), Password: "pw", Permissions: &server.Permissions{
				Publish:   &server.SubjectPermission{Allow: p.Publish, Deny: p.Deny},
				Subscribe: &server.SubjectPermission{Allow: p.Subscribe},
			}}
			if p.Respond {
				user.Permissions.Response = &server.ResponsePermission{MaxMsgs: 1, Expires: server.DEFAULT_ALLOW_RESPONSE_EXPIRATION}
			}
			o.Users = append(o.Users, user)
		}
	})
}

func as(role Role, s *natstest.Servers) string {
	return "nats://" + string(role) + ":pw@" + strings.TrimPrefix(s.URL(), "nats://")
}

// A whole run works with the permissions that are listed.
func TestPermissionsSuffice(t *testing.T) {
	t.Parallel()
	s := restricted(t)
	ctx := bounded(t)
	c, w := connect(t, as(Caller, s), "c"), connect(t, as(Worker, s), "w")
	ids := must.Get(w.Watch(ctx))(t)
	data := strings.Repeat("file", 1<<18)
	sum := sha256.Sum256([]byte(data))
	digest := hex.EncodeToString(sum[:])
	mine := create(t, c, Config{ID: "a1", Definition: bytes.Repeat([]byte("d"), 2<<20)})
	must.Do(t, c.PutFile(ctx, digest, strings.NewReader(data)))
	theirs := must.Get(w.Open(ctx, <-ids))(t)
	if runs := must.Get(w.Runs(ctx))(t); len(runs) != 1 {
		t.Error(runs)
	}
	var got bytes.Buffer
	if err := w.GetFile(ctx, digest, &got); err != nil || got.String() != data {
		t.Error(got.Len(), err)
	}
	big := bytes.Repeat([]byte("x"), 2<<20)
	for seq := range 2 {
		must.Do(t, mine.Publish(ctx, Position{1, seq + 1}, big))
	}
	b := must.Get(theirs.Take(ctx))(t)
	must.Do(t, b.Return())
	b = must.Get(theirs.Take(ctx))(t)
	must.Get(theirs.Answer(ctx, b.Position, big))(t)
	must.Do(t, b.Done(ctx))
	if result := results(t, mine, 0, 1)[0]; !bytes.Equal(result.Data, big) {
		t.Error("another answer")
	}
	must.Get(theirs.KeepAnswer(ctx, "k", big))(t)
	must.Get(theirs.KeepAnswer(ctx, "k", []byte("late")))(t)
	changes := must.Get(theirs.Follow(ctx, ""))(t)
	for _, key := range []string{"worker.w", "keeper", "ledger", "lease.w"} {
		must.Get(theirs.Put(ctx, key, []byte("x")))(t)
		if change := <-changes; change.Key != key {
			t.Error(change)
		}
	}
	if all := must.Get(theirs.All(ctx, ""))(t); len(all) != 4 {
		t.Error(all)
	}
	must.Get(mine.Put(ctx, "end", nil))(t)
	for asker, server := range map[*Run]*Run{mine: theirs, theirs: mine} {
		stop := must.Get(server.Serve("q", func([]byte) []byte { return []byte("yes") }))(t)
		for range 3 {
			if answer := must.Get(asker.Ask(ctx, "q", nil))(t); string(answer) != "yes" {
				t.Error(answer)
			}
		}
		stop()
		heard := make(chan []byte, 1)
		stop = must.Get(server.Hear("news", func(data []byte) { heard <- data }))(t)
		must.Do(t, asker.Tell("news", []byte("x")))
		<-heard
		stop()
	}
	if all := must.Get(c.Unlisted(ctx))(t); len(all) != 0 {
		t.Error(all)
	}
	if err := mine.Drop(ctx, 3); err != nil {
		t.Error(err)
	}
	if err := c.RemoveFile(ctx, digest); err != nil {
		t.Error(err)
	}
	if err := mine.Remove(ctx); err != nil {
		t.Error(err)
	}
}

// What a worker's key must not do is refused at once, and says so.
func TestPermissionsAreLeast(t *testing.T) {
	t.Parallel()
	s := restricted(t)
	ctx := bounded(t)
	c, w := connect(t, as(Caller, s), "c"), connect(t, as(Worker, s), "w")
	mine := create(t, c, Config{ID: "a1"})
	theirs := must.Get(w.Open(ctx, "a1"))(t)
	must.Get(mine.Put(ctx, "end", []byte("x")))(t)
	stream := must.Get(w.js.Stream(ctx, itemsStream("a1")))(t)
	for name, f := range map[string]func() error{
		"create":   func() error { _, err := w.Create(ctx, Config{ID: "b1"}); return err },
		"remove":   func() error { return theirs.Remove(ctx) },
		"publish":  func() error { return theirs.Publish(ctx, Position{1, 1}, nil) },
		"drop":     func() error { return theirs.Drop(ctx, 2) },
		"end":      func() error { _, err := theirs.Put(ctx, "end", nil); return err },
		"delete":   func() error { return theirs.Delete(ctx, "end") },
		"put file": func() error { return w.PutFile(ctx, strings.Repeat("0", 64), strings.NewReader("")) },
		"define": func() error {
			_, err := w.once(ctx, resultsStream("a1"), nats.NewMsg(subject("a1", "definition")))
			return err
		},
		"queue": func() error {
			return w.patient(ctx, operation{uses: []string{"$JS.API.CONSUMER"}, do: func(ctx context.Context, _ bool) error {
				_, err := stream.UpdateConsumer(ctx, jetstream.ConsumerConfig{Durable: consumer, AckPolicy: jetstream.AckExplicitPolicy, FilterSubject: subject("a1", "items", ">")})
				return err
			}})
		},
	} {
		err := f()
		if !errors.Is(err, nats.ErrPermissionViolation) || !strings.Contains(err.Error(), "permissions do not allow") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
