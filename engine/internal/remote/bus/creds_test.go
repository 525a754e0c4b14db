package bus

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"

	"github.com/racflow/racflow/engine/internal/remote/natstest"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// A .creds file as nsc writes it opens an account of a server that trusts its operator, with the permissions of a role.
func TestCredentialsFile(t *testing.T) {
	t.Parallel()
	key := func(make func() (nkeys.KeyPair, error)) (nkeys.KeyPair, string) {
		pair := must.Get(make())(t)
		return pair, must.Get(pair.PublicKey())(t)
	}
	operator, operatorID := key(nkeys.CreateOperator)
	_, systemID := key(nkeys.CreateAccount)
	account, accountID := key(nkeys.CreateAccount)
	user, userID := key(nkeys.CreateUser)
	resolver := &server.MemAccResolver{}
	for _, id := range []string{systemID, accountID} {
		claims := jwt.NewAccountClaims(id)
		if id == accountID {
			claims.Limits.JetStreamLimits = jwt.JetStreamLimits{DiskStorage: jwt.NoLimit, MemoryStorage: jwt.NoLimit, Streams: jwt.NoLimit, Consumer: jwt.NoLimit}
		}
		must.Do(t, resolver.Store(id, must.Get(claims.Encode(operator))(t)))
	}
	s := natstest.Start(t, 1, func(_ int, o *server.Options) {
		o.TrustedKeys, o.SystemAccount, o.AccountResolver = []string{operatorID}, systemID, resolver
	})
	claims := jwt.NewUserClaims(userID)
	p := permissions(t, Caller)
	claims.Pub.Allow.Add(p.Publish.Allow...)
	claims.Sub.Allow.Add(p.Subscribe.Allow...)
	claims.Resp = &jwt.ResponsePermission{MaxMsgs: 1}
	text := must.Get(jwt.FormatUserConfig(must.Get(claims.Encode(account))(t), must.Get(user.Seed())(t)))(t)
	path := filepath.Join(t.TempDir(), "caller.creds")
	must.Do(t, os.WriteFile(path, text, 0o600))
	c := connect(t, s.URL(), "c", func(o *Options) { o.Credentials = path })
	r := create(t, c, Config{ID: "a1"})
	if first := must.Get(r.Answer(bounded(t), Position{1, 1}, nil))(t); !first {
		t.Error("not the first answer")
	}
}
